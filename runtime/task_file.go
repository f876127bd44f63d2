package runtime

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
)

// maxShownFile is the size of the text files, all together, that the first message of a task
// holds. An agent fetches others as artifacts.
const maxShownFile = 32 << 10

// sharedFile describes a file of a task in its first message.
type sharedFile struct {
	Name      string `json:"name"`
	Artifact  string `json:"artifact"` // the reference
	MediaType string `json:"mediaType"`
	Size      int    `json:"size"`              // in bytes
	Content   string `json:"content,omitempty"` // of a short text
}

// taskFiles is what the start of a task records of its files.
type taskFiles struct {
	records []journal.Record // an artifact of the task for each file
	blobs   []string         // the hashes of their contents
	list    []sharedFile
	images  []string // references to those that are images
	bytes   int      // of all contents
}

// newTaskFiles checks the files of a new task and makes their artifacts, which belong to the
// task and to no agent.
func (rt *Runtime) newTaskFiles(task identity.TaskID, files []org.TaskFile) (taskFiles, error) {
	var made taskFiles
	shown := 0 // bytes of the contents that the first message holds
	if err := org.CheckTaskFiles(files); err != nil {
		return made, err
	}
	for i, f := range files {
		a, err := fileArtifact(f)
		if err != nil {
			return made, err
		}
		id := identity.DeriveID(string(task), fmt.Sprint("file ", i))
		record, put, err := rt.artifacts.newRecords(id, Artifact{Task: task}, a)
		if err != nil {
			return made, fmt.Errorf("file %q: %w", f.Name, err)
		}
		entry := sharedFile{Name: f.Name, Artifact: refPrefix + id, MediaType: record.MediaType, Size: len(f.Data)}
		if f.IsText() && shown+len(f.Data) <= maxShownFile {
			entry.Content = string(f.Data)
			shown += len(f.Data)
		}
		if f.IsImage() {
			made.images = append(made.images, entry.Artifact)
		}
		made.records, made.blobs = append(made.records, put...), append(made.blobs, record.Blob)
		made.list, made.bytes = append(made.list, entry), made.bytes+record.Size
	}
	return made, nil
}

// fileArtifact returns the artifact of a file: a text is stored as text.
func fileArtifact(f org.TaskFile) (builtin.Artifact, error) {
	meta, err := json.Marshal(map[string]string{"name": f.Name})
	if err != nil {
		return builtin.Artifact{}, err
	}
	a := builtin.Artifact{Type: f.MediaType(), Meta: meta}
	if !f.IsText() {
		a.Data = f.Data
		return a, nil
	}
	a.Type, _, _ = strings.Cut(a.Type, ";")
	a.Value, err = json.Marshal(string(f.Data))
	return a, err
}
