package trace_test

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"memorymark/snapshot"
	"memorymark/trace"
)

// Where two runs of a BERT part: Adam allocates its state in the first step,
// 93,763,584 bytes for the embeddings of words, and SGD has none.
func ExampleCompare() {
	a, b := read("bert_2l_b4_s64_fp32_adam_train"), read("bert_2l_b4_s64_fp32_sgd_train")
	c := trace.Compare(a, b)
	fmt.Println(c.Differ(), c.Before, "requests are the same before")
	first := c.Requests[0][c.Stretches[0].From[0]]
	fmt.Println("then Adam allocates", first.Size, "bytes")
	// Output:
	// true 310 requests are the same before
	// then Adam allocates 93763584 bytes
}

func read(name string) *trace.Trace {
	data, err := os.ReadFile(filepath.Join("../testdata/truth/recorded", name+".pickle.xz"))
	if err != nil {
		log.Fatal(err)
	}
	s, err := snapshot.Read(bytes.NewReader(data), snapshot.Limits{})
	if err != nil {
		log.Fatal(err)
	}
	return s.Devices[0]
}
