// Package chrome is a module with a web browser for agents. It has the group "chrome" with ten
// tools. They use a Chromium that is installed on the machine.
//
//	kind := modules.ModuleKind{Name: chrome.Kind, New: chrome.New(chrome.Deps{Policy: policy, Hosts: rt, Artifacts: artifacts})}
//
// Each principal has its own browser, which is started at its first call. Browsers share no
// process, cookies, storage or tabs. So a page costs only its principal. A browser runs in the
// sandbox of package sandbox, as far as the system has one. All its requests go through its own
// proxy in this process, which checks the hosts that the principal may reach and dials with
// hosts.DialGuard. Some seconds after a call it is paused until the next one. It ends when it
// is idle, when it uses too much memory, or when another principal needs its place. The next
// result tells its principal.
//
// The package does not check who may call a tool; package gate does. Deps.Hosts decides
// which hosts a principal may reach.
package chrome

import (
	"cmp"
	"context"
	"encoding/json"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/rolecall/rolecall/builtin/sandbox"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Kind is the name of this kind of module.
const Kind = "chrome"

// Deps are the dependencies of the module. With the zero Deps the browser can send no
// requests. All of them are used concurrently.
type Deps struct {
	Launcher  *sandbox.Launcher // runs the browser in the sandbox; nil has none
	Policy    func() Policy     // called for each connection; nil is the zero Policy
	Hosts     Hosts             // nil allows no hosts
	Artifacts Artifacts         // stores screenshots; nil: the results contain them
	Resolver  *net.Resolver     // nil is the system's
}

// Policy is the operator's policy for all requests, as for http_request. The zero Policy
// allows no requests.
type Policy struct {
	AllowHTTP bool           // allow http and ws in addition to https and wss
	Private   []netip.Prefix // addresses that are not public and allowed nevertheless
	Hosts     hosts.HostRule // the hosts allowed for any role
}

// Hosts decides which hosts a principal may reach.
type Hosts interface {
	// MayReach returns nil if requests of by may go to a host now, else an error with the
	// code host_blocked.
	MayReach(ctx context.Context, by identity.Principal, h hosts.Host) error
}

// Artifacts stores images.
type Artifacts interface {
	// PutImage stores an image for the task of the calling agent, or for the external
	// caller, and returns the reference. It is idempotent by c.ID.
	PutImage(ctx context.Context, c tool.Call, mediaType string, data []byte, meta json.RawMessage) (ref string, err error)
}

// Settings are the settings in the configuration.
type Settings struct {
	Executable  string   `json:"executable"`  // of the browser; default chromium, chromium-browser, google-chrome or chrome in PATH
	MaxTabs     int      `json:"maxTabs"`     // per principal; 1 to 100, default 8
	MaxBrowsers int      `json:"maxBrowsers"` // at once, one per principal; 1 to 1000, default 8
	IdleTimeout Duration `json:"idle"`        // a browser without a call for this time is closed; default 5m
	Keep        Duration `json:"keep"`        // so long after a call it is not closed for another principal; default 30s
	Background  Duration `json:"background"`  // so long after a call its pages go on; then they are paused; default 10s
	Viewport    Size     `json:"viewport"`    // of a tab; default 1280 by 800
	MaxTransfer int64    `json:"maxTransfer"` // bytes that the pages of a principal may receive between two calls; default 128 MiB
	MaxMemory   int64    `json:"maxMemory"`   // bytes of memory of one browser; default 2 GiB
	NoSandbox   bool     `json:"noSandbox"`   // starts the browser without any sandbox, also where one works
}

// Size is a size in CSS pixels, each side from 100 to 4096.
type Size struct {
	Width  int64 `json:"width"`
	Height int64 `json:"height"`
}

// Duration is a time.Duration that is written as in Go: 90s, 5m.
type Duration time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = Duration(parsed)
	return err
}

func defaults() Settings {
	return Settings{
		MaxTabs: 8, MaxBrowsers: 8, IdleTimeout: Duration(5 * time.Minute), Keep: Duration(30 * time.Second), Background: Duration(10 * time.Second),
		Viewport:    Size{1280, 800},
		MaxTransfer: 128 << 20, MaxMemory: 2 << 30,
	}
}

// Module implements modules.Module, modules.Validator and io.Closer. It starts the browser
// when a call needs it.
type Module struct {
	name     string
	settings Settings
	tools    []tool.Tool
	pool     *pool
}

// New returns a modules.Constructor of modules with these dependencies.
func New(deps Deps) modules.Constructor {
	return func(c modules.Config) (modules.Module, error) {
		m := &Module{name: c.Name, settings: defaults()}
		if err := c.DecodeSettings(&m.settings); err != nil {
			return nil, err
		}
		if err := m.settings.check(c.Name); err != nil {
			return nil, err
		}
		m.pool = newPool(m.settings, deps, c.Host.Log)
		var err error
		m.tools, err = (&handlers{m.pool, deps.Artifacts}).tools()
		return m, err
	}
}

// Name implements modules.Module.
func (m *Module) Name() string { return m.name }

// ToolGroups implements modules.Module.
func (m *Module) ToolGroups() []toolgroups.Group {
	return []toolgroups.Group{{ID: "chrome", Description: "Use a web browser", Tools: m.tools}}
}

// Validate implements modules.Validator: a configured executable has to exist. If none is
// configured and none is found, calls fail with tool_unavailable.
func (m *Module) Validate() error {
	if m.settings.Executable == "" {
		return nil
	}
	if _, err := exec.LookPath(m.settings.Executable); err != nil {
		return errcode.Wrap(errcode.InvalidConfig, err, "settings of module %q: executable %q cannot be run", m.name, m.settings.Executable)
	}
	return nil
}

// Close implements io.Closer. It returns when the browsers have ended and their files are
// removed.
func (m *Module) Close() error { return m.pool.close() }

// check validates the settings. The error names the setting.
func (s Settings) check(module string) error {
	validSide := func(n int64) bool { return n >= 100 && n <= 4096 }
	problem := ""
	switch {
	case s.MaxTabs < 1 || s.MaxTabs > 100:
		problem = "maxTabs must be from 1 to 100"
	case s.MaxBrowsers < 1 || s.MaxBrowsers > 1000:
		problem = "maxBrowsers must be from 1 to 1000"
	case s.IdleTimeout <= 0:
		problem = "idle must be more than 0, such as 5m"
	case s.Keep < 0:
		problem = "keep must be 0s or more, such as 30s"
	case s.Background < 0:
		problem = "background must be 0s or more, such as 10s"
	case !validSide(s.Viewport.Width) || !validSide(s.Viewport.Height):
		problem = "width and height of viewport must be from 100 to 4096"
	case s.MaxTransfer < 1<<20:
		problem = "maxTransfer must be at least 1048576 bytes"
	case s.MaxMemory < 512<<20 || s.MaxMemory > 1<<40:
		problem = "maxMemory must be from 536870912 to 1099511627776 bytes"
	default:
		return nil
	}
	return errcode.New(errcode.InvalidConfig, "settings of module %q: %s", module, problem)
}

// executable returns the absolute path of the browser.
func (s Settings) executable() (string, error) {
	for _, name := range []string{cmp.Or(s.Executable, "chromium"), "chromium-browser", "google-chrome", "chrome"} {
		path, err := exec.LookPath(name)
		if err == nil {
			return filepath.Abs(path)
		}
		if s.Executable != "" {
			return "", err
		}
	}
	return "", errcode.New(errcode.ToolUnavailable, "no browser found; the operator can install Chromium, or set executable in the settings of the module")
}
