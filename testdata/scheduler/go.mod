module example.com/scheduler

go 1.26.0

require memorymark v0.0.0

require (
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/ulikunitz/xz v0.5.17 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace memorymark => ../..
