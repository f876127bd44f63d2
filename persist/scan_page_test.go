package persist_test

import (
	"bytes"
	"testing"

	"github.com/rolecall/rolecall/persist"
)

// Bolt's own pages have no checksum. Where one's header or first elements are
// damaged, Open and reading come to an end, and read nothing that nobody wrote.
func TestADamagedPageIsNoMoreThanThat(t *testing.T) {
	file := specimen(t, 3)
	want, refused := wholeFile(t, file), 0
	for page := 0; page < len(file); page += 4096 { // header: id 8, flags 2, count 2, overflow 4; then elements
		for _, at := range []int{0, 8, 10, 12, 16, 20, 24, 28, 32} {
			for _, piece := range []string{"\xff", "\x02\x00\x00\x00"} {
				broken := bytes.Clone(file)
				copy(broken[page+at:], piece)
				said, faults := lookedAt(write(t, broken))
				for line := range said {
					if !want[line] {
						t.Errorf("%x at %d of page %d: read %s, which nobody wrote", piece, at, page, line)
					}
				}
				refused += min(1, len(faults))
			}
		}
	}
	if refused < 20 {
		t.Errorf("only %d damaged files were noticed", refused)
	}
}

// lookedAt opens a data directory and reads all it says.
func lookedAt(dir string) (said map[string]bool, faults []error) {
	s, err := persist.Open(dir)
	if err != nil {
		return nil, []error{err}
	}
	defer s.Close()
	return everything(s)
}
