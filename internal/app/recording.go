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

// recordings writes what each task asks its models, one file per task, which a model of
// type replay can play back. The zero recordings writes nothing.
type recordings struct {
	dir   string
	log   *slog.Logger
	count func(task identity.TaskID, bytes int) error // counts what is written, or refuses it

	mu      sync.Mutex // guards the fields below
	secrets []string   // left out of every recording; the slice is never changed in place
	keys    fetchedKeys
	byTask  map[identity.TaskID]*recording
}

// addSecrets adds texts that recordings must not contain.
func (r *recordings) addSecrets(secrets []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range secrets {
		if !slices.Contains(r.secrets, s) {
			r.secrets = append(slices.Clip(r.secrets), s)
		}
	}
}

// secretList returns the texts that recordings must not contain.
func (r *recordings) secretList() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Concat(r.secrets, r.keys.secrets())
}

// addKey adds a key that a model has read.
func (r *recordings) addKey(k fetchedKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys = r.keys.add(k)
}

// maxRecorders bounds the recorders in memory. When the bound is reached all are dropped;
// a task that goes on opens its file again and appends.
const maxRecorders = 256

// wrap returns a model whose requests and answers are recorded. Scripts and recordings are
// not recorded: they return the same answers again without it.
func (r *recordings) wrap(kind string, m model.Model) model.Model {
	if kind == "script" || kind == "replay" || r.dir == "" {
		return m
	}
	return recordingModel{model.WindowWrapper{Model: m}, r}
}

// recordingModel records the requests of each task to its model.
type recordingModel struct {
	model.WindowWrapper
	recordings *recordings
}

// Generate implements model.Model.
func (m recordingModel) Generate(ctx context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	recording := m.recordings.recorder(r.Self.Task)
	return func(yield func(model.AnswerDelta, error) bool) {
		recording.Wrap(m.Model).Generate(ctx, r)(yield)
		if err := recording.Err(); err != nil {
			recording.warnOnce.Do(func() { m.recordings.log.Warn("recording of a task stopped", "task", r.Self.Task, "error", err) })
		}
	}
}

// recording is the recorder of a task. It warns once when it stops after a failed write.
type recording struct {
	*replay.Recorder
	warnOnce sync.Once
}

// recorder returns the recorder of a task.
func (r *recordings) recorder(id identity.TaskID) *recording {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found, ok := r.byTask[id]; ok {
		return found
	}
	if r.byTask == nil || len(r.byTask) >= maxRecorders {
		r.byTask = map[identity.TaskID]*recording{}
	}
	made := &recording{Recorder: replay.NewRecorder(r.newFile(id), r.secretList)}
	r.byTask[id] = made
	return made
}

// recordingSuffix ends the file name of a recording, after the id of its task.
const recordingSuffix = ".jsonl"

// newFile returns the file of a task's recording.
func (r *recordings) newFile(id identity.TaskID) appendFile {
	return appendFile{filepath.Join(r.dir, string(id)+recordingSuffix), func(bytes int) error { return r.count(id, bytes) }}
}

// appendFile is a path that is opened for each write, so that idle tasks hold no file.
type appendFile struct {
	path  string
	count func(bytes int) error // counts what is written, or refuses it
}

// Write implements io.Writer.
func (a appendFile) Write(line []byte) (n int, err error) {
	if err := a.count(len(line)); err != nil {
		return 0, err
	}
	if err := os.MkdirAll(filepath.Dir(a.path), 0o700); err != nil {
		return 0, err
	}
	file, err := os.OpenFile(a.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	n, err = file.Write(line)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return n, err
}
