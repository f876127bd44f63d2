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

	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/textutil"
)

// WatchConfig applies the configuration of Options.Files again whenever the files change,
// and on SIGHUP. It does so until ctx ends or stop is called. stop waits for a change in
// progress. An error is printed on the console, once for the same content, and leaves the
// active configuration unchanged.
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

// run looks at the files every interval until ctx ends.
func (w *configWatcher) run(ctx context.Context, hangup <-chan os.Signal) {
	defer w.background.Wait()
	defer w.app.pins.WatchQuarantine(func() { w.quarantineChanged.Store(true) })()
	w.provisionModules(ctx)
	tick := time.NewTicker(cmp.Or(w.app.pollInterval, time.Second))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			w.reload(ctx, bySignal)
		case <-tick.C:
			if w.changeSettled() {
				w.reload(ctx, byChange)
			}
			if w.quarantineChanged.Swap(false) {
				w.reportQuarantine(ctx)
			}
		}
	}
}

// configWatcher detects changes of the configuration files.
type configWatcher struct {
	app           *App
	lastDigest    string   // of the content that was loaded last
	includedFiles []string // files that the documents name, such as scripts and secrets
	lastStats     string   // fileStats of the last look
	unstable      bool     // the last look found a change; they may still be written

	quarantineChanged atomic.Bool // set when a server offers other definitions

	background sync.WaitGroup // provisions modules and pings databases
	mu         sync.Mutex     // guards reported
	reported   int            // definitions in quarantine at the last report
}

func (a *App) newConfigWatcher() *configWatcher {
	a.configMu.Lock()
	defer a.configMu.Unlock()
	w := &configWatcher{app: a, unstable: true}
	if a.current != nil {
		w.remember(a.current, nil)
	}
	return w
}

// remember records what was loaded.
func (w *configWatcher) remember(cfg *config.Config, err error) {
	w.lastDigest, w.includedFiles = configDigest(cfg, err), nil
	for _, file := range cfg.Files {
		w.includedFiles = append(w.includedFiles, file.Path)
	}
	for _, file := range cfg.SecretFiles {
		w.includedFiles = append(w.includedFiles, file.Path)
	}
}

// changeSettled reports true once after a change: when the files look the same in two looks in a
// row, and otherwise than before.
func (w *configWatcher) changeSettled() bool {
	if len(w.app.options.Files) == 0 {
		return false
	}
	now := fileStats(append(append([]string{}, w.app.options.Files...), w.includedFiles...))
	if now != w.lastStats {
		w.lastStats, w.unstable = now, true
		return false
	}
	was := w.unstable
	w.unstable = false
	return was
}

// fileStats describes files by size and time, to detect changes without reading them. Of a
// directory it describes the documents only.
func fileStats(paths []string) string {
	var b strings.Builder
	for _, path := range paths {
		info, err := os.Stat(path)
		describeFile(&b, path, info, err)
		if err != nil || !info.IsDir() {
			continue
		}
		entries, _ := os.ReadDir(path) // an unreadable folder has no documents; loading reports it
		for _, e := range entries {
			if config.IsDocument(e.Name()) {
				name := filepath.Join(path, e.Name())
				info, err := os.Stat(name)
				describeFile(&b, name, info, err)
			}
		}
	}
	return b.String()
}

func describeFile(b *strings.Builder, path string, info fs.FileInfo, err error) {
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

// configDigest returns a digest of everything that was read, and of the load error.
func configDigest(cfg *config.Config, err error) string {
	sum := sha256.New()
	for _, f := range cfg.Files {
		fmt.Fprintf(sum, "%q %d %t\n", f.Path, len(f.Data), f.Named)
		sum.Write(f.Data)
	}
	for _, f := range cfg.SecretFiles {
		fmt.Fprintf(sum, "%q %x\n", f.Path, f.Sum)
	}
	if err != nil {
		fmt.Fprintf(sum, "but %q", err)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Values of asked in load.
const (
	bySignal = true
	byChange = false
)

// reload reads the files and applies them, unless the same content was tried before. asked
// is true on SIGHUP, which tries it again.
func (w *configWatcher) reload(ctx context.Context, asked bool) {
	if len(w.app.options.Files) == 0 {
		w.print("no configuration to load: no -f was given")
		return
	}
	defer debug.FreeOSMemory() // reading many documents leaves much garbage
	cfg, err := w.app.loadConfig()
	before := w.lastDigest
	if w.remember(cfg, err); w.lastDigest == before && !asked {
		return
	}
	if err != nil {
		w.print("the configuration is unchanged: " + err.Error())
		return
	}
	w.app.takeChanges() // the changes of the start
	summary, err := w.app.reconfigure(ctx, cfg)
	w.provisionModules(ctx)
	defer w.printChanges()
	switch {
	case err == nil:
		w.print(strings.Join(append([]string{"the new configuration is active"}, summary...), "; "))
	case summary == nil:
		w.print("the configuration is unchanged: " + err.Error())
	default:
		w.print(strings.Join(append(summary, "the new configuration is active, except: "+err.Error()), "; "))
	}
}

// printChanges prints by name what the change added and removed.
func (w *configWatcher) printChanges() {
	if list := w.app.takeChanges(); len(list) > 0 {
		w.print(strings.Join(list, "; "))
	}
}

// loadConfig reads the configuration files. It reuses the tools that have not changed.
func (a *App) loadConfig() (*config.Config, error) {
	a.configMu.Lock()
	now := a.current
	a.configMu.Unlock()
	if now == nil {
		return config.LoadFiles(a.options.Files, a.options.Env)
	}
	return now.ReloadFiles(a.options.Files, a.options.Env)
}

// provisionModules provisions in the background the modules that were loaded from stored
// definitions, and pings new databases. So a server whose tools changed, or a wrong
// password, is reported before the first call.
func (w *configWatcher) provisionModules(ctx context.Context) {
	w.background.Go(func() { w.app.pools.PingServers(ctx) })
	for _, m := range w.app.loader.ListModules() {
		w.background.Go(func() {
			if err := w.app.loader.ProvisionModule(ctx, m.Name); err != nil && ctx.Err() == nil {
				w.app.options.Log.Warn("module not provisioned", "module", m.Name, "error", err)
			}
			w.reportQuarantine(ctx)
		})
	}
}

// reportQuarantine prints how many definitions are in quarantine when the number has
// changed. Their tools are missing until the operator accepts them.
func (w *configWatcher) reportQuarantine(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	list, err := w.app.pins.ListQuarantine(ctx)
	if err != nil || len(list) == w.reported {
		return // a failed store is reported where it is needed
	}
	if w.reported = len(list); w.reported > 0 {
		w.print(fmt.Sprintf("tools of MCP servers and announced services in quarantine: %d; see \"rolecall tool list --quarantined\"", w.reported))
	}
}

func (w *configWatcher) print(text string) {
	fmt.Fprintln(w.app.options.Console, "rolecall: "+textutil.SanitizeLines(text))
}
