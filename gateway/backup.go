package gateway

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// A copy that is being taken needs room on the disk. Who takes one may wait a
// moment, and then for as long as this many bytes a second would need: no
// reader that is stuck holds it for ever.
const (
	backupStall = 30 * time.Second
	minRate     = 1 << 20
)

// backup streams a copy of the organization's file. One that breaks off ends
// visibly cut off, and without the seal that makes it whole.
func (a *api) backup(w http.ResponseWriter, r *http.Request) error {
	store, ok := a.rt.Store().(interface {
		Backup(context.Context, io.Writer) (uint64, error)
	})
	if !ok || !isLocalRequest(r) {
		return noRoute(w, r)
	}
	if err := a.rt.Flush(); err != nil {
		return err
	}
	w.Header().Set("Content-Disposition", `attachment; filename="rolecall.backup"`)
	w.Header().Set("Content-Type", "application/octet-stream")
	p := &deadlineWriter{w: w, began: time.Now()}
	seq, err := store.Backup(r.Context(), p)
	switch {
	case err != nil && p.taken == 0 && r.Context().Err() == nil:
		w.Header().Del("Content-Disposition")
		return err
	case err != nil:
		a.log.Warn("backup broken off", "bytes", p.taken, "error", err)
		panic(http.ErrAbortHandler)
	}
	a.log.Info("backup taken", "bytes", p.taken, "seq", seq)
	return nil
}

// isLocalRequest says whether a request came over a socket or was made in this
// process. A copy holds everything, prompts and all: over a network nobody
// gets one, whoever it is.
func isLocalRequest(r *http.Request) bool {
	at := r.Context().Value(http.LocalAddrContextKey)
	if at == nil {
		return true // no server has it
	}
	addr, ok := at.(net.Addr)
	return ok && addr.Network() == "unix"
}

// deadlineWriter writes an answer to a reader that has to keep up.
type deadlineWriter struct {
	w     http.ResponseWriter
	began time.Time
	taken int64
}

// Write implements io.Writer. In this process there is no deadline to set, and
// nobody to wait for: the reader is the process itself.
func (p *deadlineWriter) Write(b []byte) (int, error) {
	due := p.began.Add(backupStall + time.Duration(p.taken/minRate)*time.Second)
	err := http.NewResponseController(p.w).SetWriteDeadline(due)
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	n, err := p.w.Write(b)
	p.taken += int64(n)
	return n, err
}

// Backup gives a copy of the organization's file, for the caller to read and
// close. It is whole when it ends with io.EOF, and says so itself: see
// persist.Verify.
func (c *Client) Backup(ctx context.Context) (io.ReadCloser, error) {
	answer, err := c.do(ctx, call{method: http.MethodGet, path: path("backup")})
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}
