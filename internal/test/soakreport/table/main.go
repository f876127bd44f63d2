// Command table prints the verdicts in a file, as Markdown with -md. It exits
// with 1 when a claim was missed.
//
//	go run ./internal/test/soakreport/table [-md] soak.jsonl
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/rolecall/rolecall/internal/test/soakreport"
)

func main() {
	md := flag.Bool("md", false, "print Markdown")
	flag.Parse()
	kept, err := show(flag.Arg(0), *md)
	if err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
	}
	if err != nil || !kept {
		os.Exit(1)
	}
}

func show(path string, md bool) (kept bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	lines, err := soakreport.Read(f)
	if err != nil {
		return false, err
	}
	if md {
		return soakreport.Kept(lines), soakreport.Markdown(os.Stdout, lines)
	}
	return soakreport.Kept(lines), soakreport.Table(os.Stdout, lines)
}
