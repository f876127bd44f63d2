package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/org"
)

// Files that no task needs any more are removed as the retention of the configuration says.
// These are recordings of models, and private workspaces of tasks that are done. Events,
// artifacts and the records in the data file are never removed. A task that has failed or
// was cancelled keeps its workspace, because it may be retried.

// retentionInterval is the time between two sweeps.
const retentionInterval = time.Hour

// StartRetention begins to remove what the retention of the active configuration allows, now and
// every hour, and returns. That ends with ctx or stop, which waits for a sweep in progress. Without
// Options.Files it removes nothing: a recorded configuration may say what is outdated.
func (a *App) StartRetention(ctx context.Context) (stop func()) {
	if len(a.options.Files) == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(retentionInterval)
		defer tick.Stop()
		for ctx.Err() == nil {
			a.reportSweep(a.sweepFiles(ctx, time.Now()))
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// swept counts what a sweep has removed.
type swept struct {
	recordings     int
	recordingBytes int64
	workspaces     int
}

// reportSweep tells the operator what a sweep has removed.
func (a *App) reportSweep(s swept, err error) {
	if s != (swept{}) {
		fmt.Fprintf(a.options.Console, "rolecall: retention removed recordings: %d (%d bytes), workspaces: %d\n", s.recordings, s.recordingBytes, s.workspaces)
	}
	if err != nil {
		a.options.Warn.Warn("retention could not remove everything", "error", err)
	}
}

// sweepFiles removes what the retention of the active configuration allows at a time.
func (a *App) sweepFiles(ctx context.Context, now time.Time) (s swept, err error) {
	active := a.active.Load()
	if active == nil {
		return s, nil
	}
	keep, errs := active.config.Organization.Retention, []error{nil, nil}
	if keep.Recordings > 0 || keep.RecordingBytes > 0 {
		s.recordings, s.recordingBytes, errs[0] = a.sweepRecordings(ctx, keep, now)
	}
	if keep.Workspaces > 0 {
		s.workspaces, errs[1] = a.sweepWorkspaces(ctx, now.Add(-keep.Workspaces))
	}
	return s, errors.Join(errs...)
}

// recordingFile is the recording of a task.
type recordingFile struct {
	name  string
	size  int64
	ended time.Time // of the task; zero while it may go on. Of an unknown task, when the file was last written
}

// sweepRecordings removes recordings and returns how many, and their bytes.
func (a *App) sweepRecordings(ctx context.Context, keep config.Retention, now time.Time) (count int, bytes int64, err error) {
	root, err := os.OpenRoot(a.recordings.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, 0, nil
	} else if err != nil {
		return 0, 0, err
	}
	defer root.Close()
	list, err := a.listRecordings(root)
	errs := []error{err}
	for _, file := range expiredRecordings(list, keep, now) {
		if ctx.Err() != nil {
			break
		}
		if err := root.Remove(file.name); err != nil {
			errs = append(errs, err)
			continue
		}
		count, bytes = count+1, bytes+file.size
	}
	return count, bytes, errors.Join(errs...)
}

// listRecordings lists the recordings in a folder. Other files are left out.
func (a *App) listRecordings(root *os.Root) (list []recordingFile, err error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), recordingSuffix)
		if !ok || !e.Type().IsRegular() || !identity.IsID(id) {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // it was removed meanwhile
		}
		file := recordingFile{name: e.Name(), size: info.Size(), ended: info.ModTime()}
		if task, known := a.Runtime.Org().TaskByID(identity.TaskID(id)); known {
			file.ended = task.EndedAt
			if !task.Status.Ended() {
				file.ended = time.Time{}
			}
		}
		list = append(list, file)
	}
	return list, err
}

// expiredRecordings returns the recordings that are not kept, oldest first. Recordings of
// tasks that may go on are kept.
func expiredRecordings(list []recordingFile, keep config.Retention, now time.Time) (expired []recordingFile) {
	var total int64
	for _, file := range list {
		total += file.size
	}
	list = slices.DeleteFunc(slices.Clone(list), func(f recordingFile) bool { return f.ended.IsZero() })
	slices.SortFunc(list, func(x, y recordingFile) int { return cmp.Or(x.ended.Compare(y.ended), strings.Compare(x.name, y.name)) })
	for _, file := range list {
		old := keep.Recordings > 0 && !file.ended.Add(keep.Recordings).After(now)
		large := keep.RecordingBytes > 0 && total > keep.RecordingBytes
		if !old && !large {
			break
		}
		expired, total = append(expired, file), total-file.size
	}
	return expired
}

// sweepWorkspaces removes the private workspaces of tasks that were done before a time, and
// returns of how many tasks.
func (a *App) sweepWorkspaces(ctx context.Context, before time.Time) (count int, err error) {
	root, err := os.OpenRoot(filepath.Join(a.options.Data, workspacesFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	errs := []error{err}
	for _, e := range entries {
		task, known := a.Runtime.Org().TaskByID(identity.TaskID(e.Name()))
		if ctx.Err() != nil || !known || !e.IsDir() || task.Status != org.Done || task.EndedAt.After(before) {
			continue
		}
		switch err := removeTree(ctx, root, e.Name()); {
		case err == nil:
			count++
		case ctx.Err() == nil:
			errs = append(errs, err)
		}
	}
	return count, errors.Join(errs...)
}
