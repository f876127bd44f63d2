package gateway

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/rolecall/rolecall/gateway/mcpserver"
)

// A backup in progress keeps disk space from being reused. Its reader may pause
// for backupGracePeriod in total. Otherwise it must read minBackupRate bytes per
// second. So a stuck reader does not hold the space forever.
const (
	backupGracePeriod = 30 * time.Second
	minBackupRate     = 1 << 20
)

// backup streams a backup of the organization's file. If it fails midway, the
// connection is aborted and the checksum trailer is missing, so the client
// cannot mistake it for a complete backup.
func (a *api) backup(w http.ResponseWriter, r *http.Request) error {
	store, ok := a.rt.JournalStore().(interface {
		WriteBackup(context.Context, io.Writer) (uint64, error)
	})
	if !ok || !isLocalRequest(r) {
		return routeNotFound(w, r)
	}
	if err := a.rt.Flush(); err != nil {
		return err
	}
	w.Header().Set("Content-Disposition", `attachment; filename="rolecall.backup"`)
	w.Header().Set("Content-Type", "application/octet-stream")
	d := &deadlineWriter{w: mcpserver.WithoutWriteTimeout(w), start: time.Now()}
	seq, err := store.WriteBackup(r.Context(), d)
	switch {
	case err != nil && d.written == 0 && r.Context().Err() == nil:
		w.Header().Del("Content-Disposition")
		return err
	case err != nil:
		a.log.Warn("backup aborted", "bytes", d.written, "error", err)
		panic(http.ErrAbortHandler)
	}
	a.log.Info("backup sent", "bytes", d.written, "seq", seq)
	return nil
}

// isLocalRequest reports whether a request came over a Unix socket or from this
// process. A backup contains everything, including prompts, so it is never sent
// over a network, not even to the operator.
func isLocalRequest(r *http.Request) bool {
	local := r.Context().Value(http.LocalAddrContextKey)
	if local == nil {
		return true // not set by a server: the request is in process
	}
	addr, ok := local.(net.Addr)
	return ok && addr.Network() == "unix"
}

// deadlineWriter writes a response and fails if the reader is too slow.
type deadlineWriter struct {
	w       http.ResponseWriter
	start   time.Time
	written int64
}

// Write implements io.Writer. In-process responses have no deadlines and need
// none, because the reader is this process.
func (d *deadlineWriter) Write(b []byte) (int, error) {
	due := d.start.Add(backupGracePeriod + time.Duration(d.written/minBackupRate)*time.Second)
	err := http.NewResponseController(d.w).SetWriteDeadline(due)
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	n, err := d.w.Write(b)
	d.written += int64(n)
	return n, err
}
