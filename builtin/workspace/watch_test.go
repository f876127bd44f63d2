package workspace

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"sync/atomic"
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

// A program that may write is stopped at twice the reserve, one that can only delete at the
// reserve itself.
func TestDir_WatchDiskKeepsReserve(t *testing.T) {
	for _, c := range []struct {
		name     string
		mayWrite bool
		fits     int64
	}{{"may write", true, 200}, {"can only delete", false, 100}} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				var free atomic.Int64
				free.Store(c.fits)
				w := openDir(t, dir, Quota{Bytes: 100, Files: 10})
				w.DiskSpace = func() DiskSpace { return DiskSpace{free.Load(), 100} }
				result := make(chan error, 1)
				go func() { result <- w.WatchDisk(t.Context(), c.mayWrite) }()
				time.Sleep(time.Second) // in synctest's time
				select {
				case err := <-result:
					t.Fatalf("with %d free: %v", c.fits, err)
				default:
				}
				begin := time.Now()
				free.Store(c.fits - 1)
				if err := <-result; errcode.CodeOf(err) != errcode.StorageLow || time.Since(begin) > diskInterval {
					t.Errorf("after %v: error %v, want storage_low", time.Since(begin), err)
				}
			})
		})
	}
}

func TestDir_CheckDiskOfUnknownSpace(t *testing.T) {
	w := openDir(t, t.TempDir(), Quota{Bytes: 100, Files: 10})
	if err := w.CheckDisk(true); err != nil {
		t.Errorf("without a figure: %v", err)
	}
	w.DiskSpace = func() DiskSpace { return DiskSpace{Reserve: 1} }
	if err := w.CheckDisk(false); errcode.CodeOf(err) != errcode.StorageLow {
		t.Errorf("with nothing free: %v", err)
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
