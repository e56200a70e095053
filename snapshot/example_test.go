package snapshot_test

import (
	"bytes"
	"fmt"
	"log"
	"os"

	"memorymark/snapshot"
)

// A compressed snapshot is written as PyTorch's viewer takes it.
func ExampleWrite() {
	data, err := os.ReadFile("../testdata/truth/snapshots/gpt2_oom.pickle.xz")
	if err != nil {
		log.Fatal(err)
	}
	s, err := snapshot.Read(bytes.NewReader(data), snapshot.Limits{})
	if err != nil {
		log.Fatal(err)
	}
	var plain bytes.Buffer
	if err := snapshot.Write(&plain, s); err != nil {
		log.Fatal(err)
	}
	again, err := snapshot.Read(&plain, snapshot.Limits{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(s.Devices[0].Events), len(again.Devices[0].Events))
	// Output: 26979 26979
}
