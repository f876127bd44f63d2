package workspace

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall/errcode"
)

func TestDir_WatchQuotaReportsExceededQuota(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := openDir(t, dir, Quota{Bytes: 100, Files: 10})
		result := make(chan error, 1)
		go func() { result <- w.WatchQuota(t.Context()) }()
		putFile(t, filepath.Join(dir, "fits"), strings.Repeat("x", 100))
		time.Sleep(10 * pollInterval)
		select {
		case err := <-result:
			t.Fatalf("within the quota: %v", err)
		default:
		}
		putFile(t, filepath.Join(dir, "more"), "x")
		if err := <-result; errcode.CodeOf(err) != errcode.QuotaExceeded {
			t.Errorf("error %v, want quota_exceeded", err)
		}
	})
}

func TestDir_WatchQuotaReturnsCauseOfContext(t *testing.T) {
	cause := errors.New("the program has ended")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := openDir(t, t.TempDir(), Quota{100, 10}).WatchQuota(ctx); !errors.Is(err, cause) {
		t.Errorf("error %v, want the cause", err)
	}
}

func TestMinFreeDisk(t *testing.T) {
	for _, c := range []struct {
		name  string
		free  uint64
		known bool
		want  uint64
	}{
		{"unknown", 0, false, 0},
		{"small disk", 1000, true, 500},
		{"large disk", math.MaxUint64, true, maxReservedDisk},
	} {
		if got := minFreeDisk(c.free, c.known); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}
