// Package chrome owns a module that gives agents a web browser: the group
// "chrome" with ten tools, over a Chromium found on the machine.
//
//	kind := modules.Kind{Name: chrome.Kind, New: chrome.New(chrome.Deps{Policy: policy, Hosts: rt, Artifacts: artifacts})}
//
// An instance of the module has one browser process, started at the first
// call. Each principal has a browser context of its own: cookies, storage and
// tabs of one are nothing to another. All a context sends goes through a proxy
// of its own in this process, which asks who may reach what and dials by
// org/hosts/guard. Contexts end when idle, the browser with the last of them.
//
// The package decides no permission: who may call a tool is the gate's
// business, which hosts a principal may reach that of Hosts.
package chrome

import (
	"cmp"
	"context"
	"encoding/json"
	"net"
	"net/netip"
	"os/exec"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Kind is the name to register a constructor of New under.
const Kind = "chrome"

// Deps is what the module asks of the process it is in. The zero Needs let
// nothing out of the browser. All of it is used concurrently.
type Deps struct {
	Policy    func() Policy // asked for each connection; nil is the zero Policy
	Hosts     Hosts         // nil lets nobody reach anything
	Artifacts Artifacts     // keeps screenshots; nil keeps none
	Resolver  *net.Resolver // nil: the system's
}

// Policy is what the operator lets all requests reach, as http_request has it.
// The zero Policy lets nothing out.
type Policy struct {
	AllowHTTP bool           // http and ws beside https and wss
	Private   []netip.Prefix // reachable although not public
	Hosts     hosts.Rule     // bounds every role
}

// Hosts knows which hosts a caller may reach.
type Hosts interface {
	// MayReach says whether requests of by may go to a host now; the error is
	// host_blocked when they may not.
	MayReach(ctx context.Context, by identity.Principal, h hosts.Host) error
}

// Artifacts keeps images in the task of the agent that calls, or for the caller
// from outside. It is idempotent by call id.
type Artifacts interface {
	PutImage(ctx context.Context, c tool.Call, mediaType string, data []byte, meta json.RawMessage) (ref string, err error)
}

// Settings are what the operator may say.
type Settings struct {
	Executable  string   `json:"executable"`  // of the browser; default chromium, chromium-browser, google-chrome or chrome of PATH
	MaxTabs     int      `json:"maxTabs"`     // of a principal; 1 to 100, default 8
	MaxContexts int      `json:"maxContexts"` // principals at once; 1 to 1000, default 16
	Idle        Duration `json:"idle"`        // without a call until a context is closed; default 5m
	Viewport    Size     `json:"viewport"`    // of a tab; default 1280 by 800
	MaxTransfer int64    `json:"maxTransfer"` // bytes that pages of a principal may receive from one call to the next; default 128 MiB
	MaxMemory   int64    `json:"maxMemory"`   // bytes of data of each process of the browser; default 2 GiB
	NoSandbox   bool     `json:"noSandbox"`   // turns Chromium's own sandbox off, where it cannot work; it is off for root
}

// Size is in CSS pixels, each side from 100 to 4096.
type Size struct {
	Width  int64 `json:"width"`
	Height int64 `json:"height"`
}

// Duration is written as Go writes durations: 90s, 5m.
type Duration time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = Duration(parsed)
	return err
}

func defaults() Settings {
	return Settings{
		MaxTabs: 8, MaxContexts: 16, Idle: Duration(5 * time.Minute), Viewport: Size{1280, 800},
		MaxTransfer: 128 << 20, MaxMemory: 2 << 30,
	}
}

// Module implements modules.Module and modules.Validator. Its browser runs
// from the first call until Close.
type Module struct {
	name     string
	settings Settings
	tools    []tool.Tool
	pool     *pool
}

// New gives a modules.Constructor of modules that use n.
func New(n Deps) modules.Constructor {
	return func(c modules.Config) (modules.Module, error) {
		m := &Module{name: c.Name, settings: defaults()}
		if err := c.Decode(&m.settings); err != nil {
			return nil, err
		}
		if err := m.settings.check(c.Name); err != nil {
			return nil, err
		}
		m.pool = newPool(m.settings, n, c.Host.Log)
		var err error
		m.tools, err = (&handlers{m.pool, n.Artifacts}).tools()
		return m, err
	}
}

// Name implements modules.Module.
func (m *Module) Name() string { return m.name }

// Groups implements modules.Module.
func (m *Module) Groups() []toolgroups.Group {
	return []toolgroups.Group{{ID: "chrome", Description: "Use a web browser", Tools: m.tools}}
}

// Validate implements modules.Validator: an executable that the settings name
// has to be there. Where they name none and there is none, calls answer
// tool_unavailable.
func (m *Module) Validate() error {
	if m.settings.Executable == "" {
		return nil
	}
	if _, err := exec.LookPath(m.settings.Executable); err != nil {
		return errcode.Wrap(errcode.InvalidConfig, err, "settings of module %q: executable %q cannot be run", m.name, m.settings.Executable)
	}
	return nil
}

// Close implements io.Closer: it returns when the browser has ended and its
// files are gone.
func (m *Module) Close() error { return m.pool.close() }

func (s Settings) check(module string) error {
	side := func(n int64) bool { return n >= 100 && n <= 4096 }
	fault := ""
	switch {
	case s.MaxTabs < 1 || s.MaxTabs > 100:
		fault = "maxTabs has to be from 1 to 100"
	case s.MaxContexts < 1 || s.MaxContexts > 1000:
		fault = "maxContexts has to be from 1 to 1000"
	case s.Idle <= 0:
		fault = "idle has to be more than 0, as 5m"
	case !side(s.Viewport.Width) || !side(s.Viewport.Height):
		fault = "width and height of viewport have to be from 100 to 4096"
	case s.MaxTransfer < 1<<20:
		fault = "maxTransfer has to be 1048576 bytes or more"
	case s.MaxMemory < 512<<20:
		fault = "maxMemory has to be 536870912 bytes or more: a browser needs as much"
	default:
		return nil
	}
	return errcode.New(errcode.InvalidConfig, "settings of module %q: %s", module, fault)
}

// executable finds the browser.
func (s Settings) executable() (string, error) {
	for _, name := range []string{cmp.Or(s.Executable, "chromium"), "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil || s.Executable != "" {
			return path, err
		}
	}
	return "", errcode.New(errcode.ToolUnavailable, "there is no browser on this machine; the operator can install Chromium, or name one with executable in the settings of the module")
}
