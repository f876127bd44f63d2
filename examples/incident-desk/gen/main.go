// Command gen writes the access log of the incident desk: one day of a small shop with an
// incident.
//
//	go generate ./examples/incident-desk/gen
//
// The output is always the same: the generator uses a fixed seed, integers only, and no
// clock. All addresses are from the ranges reserved for documentation (RFC 5737, RFC 3849).
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
)

//go:generate go run . -o ../access.log

func main() {
	log.SetFlags(0)
	log.SetPrefix("gen: ")
	path := flag.String("o", "access.log", "file to write")
	flag.Parse()
	if err := create(*path); err != nil {
		log.Fatal(err)
	}
}

func create(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return f.Close()
}

// write writes the log of the day to w, oldest line first.
func write(w io.Writer) error {
	b := bufio.NewWriter(w)
	for _, line := range newDay().lines() {
		b.WriteString(line)
		b.WriteByte('\n')
	}
	return b.Flush()
}
