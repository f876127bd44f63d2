package main

import (
	"bytes"
	"os"
	"testing"
)

// The committed log is the output of the generator.
func TestWrite_MatchesCommittedLog(t *testing.T) {
	want, err := os.ReadFile("../access.log")
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := write(&got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%d bytes generated, %d committed, and they differ: run go generate in this folder", got.Len(), len(want))
	}
}
