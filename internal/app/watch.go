package app

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rolecall/rolecall/config"
	"github.com/rolecall/rolecall/internal/textutil"
)

// WatchConfig applies the configuration of Options.Files again whenever the files
// have changed, and on SIGHUP, until ctx ends or stop is called; stop waits for a
// change in progress. An error is printed on the console, once for the same content,
// and leaves the active configuration as it was.
func (a *App) WatchConfig(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer signal.Stop(hangup)
		a.newConfigWatcher().run(ctx, hangup)
	}()
	return func() {
		cancel()
		<-done
	}
}

func (f *configWatcher) run(ctx context.Context, hangup <-chan os.Signal) {
	defer f.waking.Wait()
	defer f.app.pins.WatchQuarantine(func() { f.offered.Store(true) })()
	f.provisionModules(ctx)
	tick := time.NewTicker(cmp.Or(f.app.pollInterval, time.Second))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			f.load(ctx, true)
		case <-tick.C:
			if f.stable() {
				f.load(ctx, false)
			}
			if f.offered.Swap(false) {
				f.tellQuarantine(ctx)
			}
		}
	}
}

// configWatcher knows the files of a configuration as they were last seen.
type configWatcher struct {
	app   *App
	tried string   // the digest of the content that was tried last
	also  []string // files that documents name
	seen  string   // how the files looked last
	moved bool     // they looked otherwise before: somebody may be writing

	offered atomic.Bool // what waits in quarantine may be another

	waking      sync.WaitGroup // modules that acquire what they need
	mu          sync.Mutex     // guards waits
	quarantined int            // definitions in quarantine that were told of
}

func (a *App) newConfigWatcher() *configWatcher {
	a.changing.Lock()
	defer a.changing.Unlock()
	f := &configWatcher{app: a, moved: true}
	if a.current != nil {
		f.remember(a.current, nil)
	}
	return f
}

// remember notes what was loaded.
func (f *configWatcher) remember(cfg *config.Config, err error) {
	f.tried, f.also = digest(cfg, err), nil
	for _, file := range cfg.Files {
		f.also = append(f.also, file.Path)
	}
}

// stable says, once, that the files look otherwise than before and have come
// to rest since the last look.
func (f *configWatcher) stable() bool {
	if len(f.app.options.Files) == 0 {
		return false
	}
	now := fileStats(append(append([]string{}, f.app.options.Files...), f.also...))
	if now != f.seen {
		f.seen, f.moved = now, true
		return false
	}
	was := f.moved
	f.moved = false
	return was
}

// fileStats tells files apart by what can be seen from outside; of a directory, by
// its documents.
func fileStats(paths []string) string {
	var b strings.Builder
	for _, path := range paths {
		info, err := os.Stat(path)
		describe(&b, path, info, err)
		if err != nil || !info.IsDir() {
			continue
		}
		entries, _ := os.ReadDir(path) // what is unreadable has no documents, and Load says so
		for _, e := range entries {
			if config.IsDocument(e.Name()) {
				name := filepath.Join(path, e.Name())
				info, err := os.Stat(name)
				describe(&b, name, info, err)
			}
		}
	}
	return b.String()
}

func describe(b *strings.Builder, path string, info fs.FileInfo, err error) {
	if err != nil {
		fmt.Fprintf(b, "%q absent\n", path)
		return
	}
	if info.IsDir() {
		fmt.Fprintf(b, "%q dir\n", path)
		return
	}
	fmt.Fprintf(b, "%q %d %d\n", path, info.Size(), info.ModTime().UnixNano())
}

// digest tells configurations apart by all that was read, and by what could not
// be.
func digest(cfg *config.Config, err error) string {
	sum := sha256.New()
	for _, f := range cfg.Files {
		fmt.Fprintf(sum, "%q %d %t\n", f.Path, len(f.Data), f.Included)
		sum.Write(f.Data)
	}
	if err != nil {
		fmt.Fprintf(sum, "but %q", err)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// load reads the files and puts them in force, unless that was tried; somebody
// who asked for it, by SIGHUP, has it tried again.
func (f *configWatcher) load(ctx context.Context, asked bool) {
	if len(f.app.options.Files) == 0 {
		f.print("there is no configuration to load: no -f was given")
		return
	}
	defer debug.FreeOSMemory() // what many documents were read with
	cfg, err := f.app.load()
	before := f.tried
	if f.remember(cfg, err); f.tried == before && !asked {
		return
	}
	if err != nil {
		f.print("the configuration stays as it was: " + err.Error())
		return
	}
	told, err := f.app.reconfigure(ctx, cfg)
	f.provisionModules(ctx)
	switch {
	case err == nil:
		f.print(strings.Join(append([]string{"the new configuration is in force"}, told...), "; "))
	case told == nil:
		f.print("the configuration stays as it was: " + err.Error())
	default:
		f.print(strings.Join(append(told, "the new configuration is in force but for this: "+err.Error()), "; "))
	}
}

// load reads the files of -f; tools that stand as they stood are not read again.
func (a *App) load() (*config.Config, error) {
	a.changing.Lock()
	now := a.current
	a.changing.Unlock()
	if now == nil {
		return config.Load(a.options.Files, a.options.Env)
	}
	return now.Reload(a.options.Files, a.options.Env)
}

// provisionModules has the modules that were loaded by what they knew acquire what they
// need, so that what a server changed meanwhile is noticed, and told, before a
// call; and has databases that are new looked for, so that a wrong password is.
func (f *configWatcher) provisionModules(ctx context.Context) {
	f.waking.Go(func() { f.app.pools.Ping(ctx) })
	for _, m := range f.app.loader.Modules() {
		f.waking.Go(func() {
			if err := f.app.loader.Provision(ctx, m.Name); err != nil && ctx.Err() == nil {
				f.app.options.Log.Warn("a module sleeps on", "module", m.Name, "error", err)
			}
			f.tellQuarantine(ctx)
		})
	}
}

// tellQuarantine says how many definitions wait, when it is another number than
// before: their tools are missing until somebody looks.
func (f *configWatcher) tellQuarantine(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list, err := f.app.pins.Quarantine(ctx)
	if err != nil || len(list) == f.quarantined {
		return // a store that fails is told by whoever needs it
	}
	if f.quarantined = len(list); f.quarantined > 0 {
		f.print(fmt.Sprintf("tools of MCP servers in quarantine: %d; see \"rolecall tool list --quarantined\"", f.quarantined))
	}
}

func (f *configWatcher) print(text string) {
	fmt.Fprintln(f.app.options.Console, "rolecall: "+textutil.SanitizeLines(text))
}
