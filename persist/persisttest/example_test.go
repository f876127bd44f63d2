package persisttest_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/persist/persisttest"
)

// A test opens a store in a directory, and again after closing it. Here go test does not
// provide t.
func ExampleOpenIn() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	t, ctx := new(testing.T), context.Background()
	s := persisttest.OpenIn(t, dir)
	if _, err := s.Commit(ctx, &journal.Batch{Put: []journal.Record{{Kind: "note", Key: "n1", Value: []byte(`"hello"`)}}}); err != nil {
		fmt.Println(err)
	}
	persisttest.Close(t, s) // checks the data file
	s = persisttest.OpenIn(t, dir)
	record, err := s.ReadRecord(ctx, "note", "n1")
	fmt.Println(string(record), err)
	persisttest.Close(t, s)
	// Output: "hello" <nil>
}
