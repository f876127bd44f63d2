package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// The descriptors a job's process begins with beside the usual three.
const (
	specFD   = 3 // it reads its spec here, once it is where it belongs
	reportFD = 4 // it says here what is wrong; becoming the program closes it
)

// spec is what the starter tells the process that becomes a job.
type spec struct {
	Job           // complete: its Env is the whole environment, its Limits are set
	Binary string // the path of this binary
	Number fileID // of the workspace, as the starter saw it
	Pids   bool   // something bounds the number of processes already
}

// fileID says which file something is, whatever its name.
type fileID struct{ Device, Inode uint64 }

// ready is written last before a process becomes the program. A process that
// ends without it, and without a report, was ended.
const ready = "\n"

// report is why a process did not become its job.
type report struct {
	Missing string `json:",omitempty"` // what the system does not give
	Cause   string
	Exit    int `json:",omitempty"` // the code a shell would give, when the program is the job's own fault
}

// readReport gives nil when the process became its job.
func readReport(from io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(from, 64<<10))
	if err != nil {
		return fmt.Errorf("read what a sandbox reports: %w", err)
	}
	text, isReady := bytes.CutPrefix(data, []byte(ready))
	if len(text) == 0 {
		if isReady {
			return nil
		}
		return &Unavailable{Missing: "its process was ended before it was ready"}
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("read what a sandbox reports: %w", err)
	}
	return r.error()
}

func (r report) error() error {
	switch {
	case r.Exit != 0:
		return &notFound{r.Cause, r.Exit}
	case r.Missing == "":
		return errors.New(r.Cause)
	}
	return &Unavailable{Missing: r.Missing, cause: errors.New(r.Cause)}
}
