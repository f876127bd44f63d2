package app

import (
	"context"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/replay"
)

// recordings keep what each task asks its models, one file a task, so that a
// model of type replay can play it. The zero recordings keep nothing.
type recordings struct {
	dir string
	log *slog.Logger

	mu      sync.Mutex // guards what follows
	secrets []string   // which stand in no recording
	byTask  map[identity.TaskID]*recording
}

// addSecrets keeps further secrets out of recordings.
func (r *recordings) addSecrets(secrets []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range secrets {
		if !slices.Contains(r.secrets, s) {
			r.secrets = append(slices.Clip(r.secrets), s)
		}
	}
}

func (r *recordings) hidden() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.secrets
}

// maxRecorders bounds the tasks whose recordings are remembered; one that is
// forgotten is gone on with.
const maxRecorders = 256

// wrap gives a model whose traffic is kept. Scripts are not: they say the
// same without a recording.
func (r *recordings) wrap(kind string, m model.Model) model.Model {
	if kind == "script" || kind == "replay" || r.dir == "" {
		return m
	}
	return recordingModel{model.Wrapper{Model: m}, r}
}

type recordingModel struct {
	model.Wrapper
	kept *recordings
}

// Generate implements model.Model.
func (t recordingModel) Generate(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	recording := t.kept.of(r.Self.Task)
	return func(yield func(model.Delta, error) bool) {
		recording.Wrap(t.Model).Generate(ctx, r)(yield)
		if err := recording.Err(); err != nil {
			recording.ended.Do(func() { t.kept.log.Warn("the recording of a task has ended", "task", r.Self.Task, "error", err) })
		}
	}
}

// recording is the recorder of a task, and whether it was said that it ended.
type recording struct {
	*replay.Recorder
	ended sync.Once
}

// of finds the recorder of a task.
func (r *recordings) of(id identity.TaskID) *recording {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found, ok := r.byTask[id]; ok {
		return found
	}
	if r.byTask == nil || len(r.byTask) >= maxRecorders {
		r.byTask = map[identity.TaskID]*recording{}
	}
	file := appendFile(filepath.Join(r.dir, string(id)+".jsonl"))
	made := &recording{Recorder: replay.NewRecorder(file, r.hidden)}
	r.byTask[id] = made
	return made
}

// appendFile is a file that is open only while it is written to.
type appendFile string

// Write implements io.Writer.
func (a appendFile) Write(line []byte) (n int, err error) {
	if err := os.MkdirAll(filepath.Dir(string(a)), 0o700); err != nil {
		return 0, err
	}
	file, err := os.OpenFile(string(a), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	n, err = file.Write(line)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return n, err
}
