package embed_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// maxLines is how long the files of the programs in docs/embedding.md may be, in the order
// of the document. 0 is no limit.
var maxLines = [][]int{{25}, {40, 0}, {25, 20, 0}}

// codeBlock matches a block that is a file, or the output of a program.
var codeBlock = regexp.MustCompile("(?s)```(go\n// ([a-z]+\\.go)\n|text\n)(.*?)```")

// The programs in docs/embedding.md compile, print what the document says, and are short.
// Each file imports nothing of rolecall but its root package.
func TestDocument_ProgramsRun(t *testing.T) {
	text, err := os.ReadFile("../../../docs/embedding.md")
	if err != nil {
		t.Fatal(err)
	}
	dir, programs, files := t.TempDir(), 0, []string(nil)
	for _, block := range codeBlock.FindAllStringSubmatch(string(text), -1) {
		name, content := block[2], block[3]
		if name == "" { // the output ends a program
			program := filepath.Join(dir, "program")
			run(t, "go", append([]string{"build", "-ldflags=-s -w", "-o", program}, files...)...)
			if out := run(t, program); out != content {
				t.Errorf("program %d printed %q, want %q", programs, out, content)
			}
			programs, files, dir = programs+1, nil, t.TempDir()
			continue
		}
		if programs >= len(maxLines) || len(files) >= len(maxLines[programs]) {
			t.Fatalf("program %d has more files than maxLines", programs)
		}
		if limit := maxLines[programs][len(files)]; limit > 0 && strings.Count(content, "\n") > limit {
			t.Errorf("%s of program %d has %d lines, want at most %d", name, programs, strings.Count(content, "\n"), limit)
		}
		if strings.Count(content, `"github.com/`) > 1 {
			t.Errorf("%s of program %d imports more than one package of rolecall", name, programs)
		}
		files = append(files, filepath.Join(dir, name))
		if err := os.WriteFile(files[len(files)-1], []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if programs != len(maxLines) {
		t.Errorf("the document has %d programs, want %d", programs, len(maxLines))
	}
}
