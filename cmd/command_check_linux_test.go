package cmd

import (
	"os"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/config"
)

// check says that programs run as root, where they do.
func TestCheck_NotesProgramsOfRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("not root: programs run as this user")
	}
	notes := strings.Join(identityNotes(launcher, &config.Config{}, "/proc/sys/no/such/data"), "\n")
	if !strings.Contains(notes, "programs run as root") || !strings.Contains(notes, "the file system of /proc/sys has no id-mapped mounts") {
		t.Errorf("got %q", notes)
	}
	if notes := identityNotes(launcher, &config.Config{Command: config.Command{Open: true}}, "/proc/sys"); notes != nil {
		t.Errorf("without a sandbox: %q", notes)
	}
	dir := t.TempDir()
	if err := launcher.CheckJobUser(dir); err != nil {
		t.Skip("jobs of root run as root on this system: ", err)
	}
	if notes := identityNotes(launcher, &config.Config{}, dir+"/data"); notes != nil {
		t.Errorf("with id-mapped mounts: %q", notes)
	}
}
