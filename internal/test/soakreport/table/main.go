// Command table prints the results in a file, as Markdown with -md. It exits with
// status 1 when a claim was missed.
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
	passed, err := show(flag.Arg(0), *md)
	if err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
	}
	if err != nil || !passed {
		os.Exit(1)
	}
}

func show(path string, md bool) (passed bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	lines, err := soakreport.ReadResults(f)
	if err != nil {
		return false, err
	}
	if md {
		return soakreport.AllPassed(lines), soakreport.WriteMarkdown(os.Stdout, lines)
	}
	return soakreport.AllPassed(lines), soakreport.WriteTable(os.Stdout, lines)
}
