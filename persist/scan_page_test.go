package persist_test

import (
	"bytes"
	"testing"

	"github.com/rolecall/rolecall/persist"
)

// Pages of bbolt have no checksum. If the head or the first elements of one are damaged, Open
// and reading end, and return nothing that was not written.
func TestOpen_DamagedPages(t *testing.T) {
	file := sampleFile(t, 3)
	want, refused := dumpFile(t, file), 0
	for page := 0; page < len(file); page += 4096 { // header: id 8, flags 2, count 2, overflow 4; then elements
		for _, at := range []int{0, 8, 10, 12, 16, 20, 24, 28, 32} {
			for _, piece := range []string{"\xff", "\x02\x00\x00\x00"} {
				broken := bytes.Clone(file)
				copy(broken[page+at:], piece)
				lines, errs := openAndDump(dirWith(t, broken))
				for line := range lines {
					if !want[line] {
						t.Errorf("%x at %d of page %d: read %s, which was not written", piece, at, page, line)
					}
				}
				refused += min(1, len(errs))
			}
		}
	}
	if refused < 20 {
		t.Errorf("only %d damaged files were noticed", refused)
	}
}

// openAndDump opens a data directory and returns all of its contents as lines.
func openAndDump(dir string) (lines map[string]bool, errs []error) {
	s, err := persist.Open(dir)
	if err != nil {
		return nil, []error{err}
	}
	defer s.Close()
	return dumpLines(s)
}
