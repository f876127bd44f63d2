package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// File descriptors that the process of a job inherits in addition to the
// standard three.
const (
	specFD   = 3 // the process reads its spec here, after it was put into its control group
	reportFD = 4 // the process writes its report here; closed when the program starts
	listenFD = 5 // a socket over which the process sends its listener, if Job.Listen is set

	firstTreeFD = 5 // mounts that the starter has cloned, see spec.treeFD
)

// spec is the description of a job that the starter sends to the process that
// becomes the job. Both are the same binary, so the encoding may change freely.
type spec struct {
	Job                // Env is the complete environment, and all Limits are set
	Binary      string // path of this binary
	WorkspaceID fileID // the workspace as the starter saw it
	PidsLimited bool   // a control group bounds the number of processes
	TreesPassed bool   // the process is not root, and inherits the mounts of passedTrees
}

// treeFD returns the file descriptor of the i-th mount that the starter has cloned. The
// socket for the listener, if there is one, comes first.
func (s *spec) treeFD(i int) int {
	if s.Listen {
		i++
	}
	return firstTreeFD + i
}

// fileID identifies a file independently of its path.
type fileID struct{ Device, Inode uint64 }

// ready is written to the report pipe just before the program starts. If the
// pipe ends without ready and without a report, the process was killed.
const ready = "\n"

// report describes why a process could not become its job.
type report struct {
	Missing string `json:",omitempty"` // feature that the system lacks
	Layer   string `json:",omitempty"` // layer that needs the feature
	Cause   string
	Exit    int `json:",omitempty"` // exit code of a shell when the program itself cannot be executed
}

// readReport reads the report pipe to its end. It returns nil when the program
// was started.
func readReport(from io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(from, 64<<10))
	if err != nil {
		return fmt.Errorf("read report of sandbox process: %w", err)
	}
	text, isReady := bytes.CutPrefix(data, []byte(ready))
	if len(text) == 0 {
		if isReady {
			return nil
		}
		return &UnavailableError{Missing: "the sandbox process was killed during its setup"}
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("read report of sandbox process: %w", err)
	}
	return r.error()
}

// error returns the report as an error.
func (r report) error() error {
	switch {
	case r.Exit != 0:
		return &execError{r.Cause, r.Exit}
	case r.Missing == "":
		return errors.New(r.Cause)
	}
	return &UnavailableError{Missing: r.Missing, layer: r.Layer, cause: errors.New(r.Cause)}
}
