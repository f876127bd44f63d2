package chrome

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rolecall/rolecall/builtin/sandbox"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/textutil"
)

// maxStderr is how many bytes of the browser's stderr are kept for the log.
const maxStderr = 8 << 10

// process is a started browser: in the sandbox, or a process of the host with a directory of
// its own.
type process struct {
	in       io.ReadCloser  // messages from the browser; ends with it
	out      io.WriteCloser // messages to the browser
	listener net.Listener   // for the proxy of the browser
	private  bool           // only the browser reaches the listener
	pid      int            // of the first process
	stderr   *textutil.TailBuffer
	controls // how the browser was started
}

// controls are those of a browser as it was started. Its methods may be called concurrently.
type controls interface {
	pause()                // stops all its processes until resume; does nothing on systems other than Linux
	resume()               // continues them
	kill()                 // kills them; in ends then
	done() <-chan struct{} // closed when it has ended; nil if the end of in tells
	stop() error           // kills them, waits for their end, and removes the files
	outOfMemory() bool     // after stop: whether the kernel has killed one for lack of memory
}

// launch starts the browser in the sandbox. If this system has no sandbox, it uses Chromium's own, which
// does not work for root. With NoSandbox it uses neither.
func launch(s Settings, launcher *sandbox.Launcher, log *slog.Logger) (*process, error) {
	executable, err := s.executable()
	if err != nil {
		return nil, err
	}
	if s.NoSandbox {
		return launchOnHost(executable, s)
	}
	p, err := launchInSandbox(executable, s, launcher)
	missing, ok := errors.AsType[*sandbox.UnavailableError](err)
	switch {
	case !ok:
		return p, err
	case os.Getuid() == 0: // Chromium's own sandbox does not work for root
		return nil, errcode.Wrap(errcode.ToolUnavailable, err, "the browser has no sandbox here (%s); the operator can start rolecall as another user than root, or set noSandbox in the settings of the module", missing.Detail())
	}
	log.Warn("browser starts with Chromium's own sandbox only", "missing", missing.Detail())
	return launchOnHost(executable, s)
}

// startScript starts the browser from a shell. The memory limit applies to each of its processes. The
// programs that Chromium starts for links such as mailto: are replaced by some that do nothing.
const startScript = `ulimit -d "$1" && ulimit -c 0 && mkdir "$HOME/handlers" || exit 1
shift
for name in xdg-email xdg-open xdg-settings xdg-mime xdg-screensaver xdg-icon-resource xdg-desktop-menu; do
	echo '#!/bin/sh' > "$HOME/handlers/$name" && chmod 755 "$HOME/handlers/$name" || exit 1
done
export PATH="$HOME/handlers:$PATH"
exec "$@" 3<&0 4>&1 </dev/null >/dev/null` // 3 and 4: --remote-debugging-pipe

// arguments returns the command that starts the browser with a home directory. Its stdin and
// stdout are for the messages.
func arguments(executable, home string, s Settings, chromiumSandbox bool) []string {
	limit := strconv.FormatInt(s.MaxMemory>>10, 10)
	return append([]string{"/bin/sh", "-c", startScript, "chrome", limit, executable}, flags(home, s, chromiumSandbox)...)
}

// environment returns the environment of the browser, which gets none of ours.
func environment(home string) []string {
	return []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "HOME=" + home, "TMPDIR=" + home,
		"XDG_CONFIG_HOME=" + filepath.Join(home, "config"), "XDG_CACHE_HOME=" + filepath.Join(home, "cache"),
		"DBUS_SESSION_BUS_ADDRESS=disabled:", "DBUS_SYSTEM_BUS_ADDRESS=disabled:",
	}
}

// sandboxed is a browser in the sandbox. Its files are in memory and end with it.
type sandboxed struct{ *sandbox.Process }

// maxProcesses limits the processes and threads of a browser in the sandbox.
const maxProcesses = 2048

// launchInSandbox starts the browser as a job of the sandbox. It reaches nothing but its proxy.
func launchInSandbox(executable string, s Settings, launcher *sandbox.Launcher) (*process, error) {
	stderr := &textutil.TailBuffer{Size: maxStderr}
	job, err := launcher.StartProcess(sandbox.Job{
		Argv: arguments(executable, sandbox.Scratch, s, false), Env: environment(sandbox.Scratch),
		Readable: readable(executable), Stderr: stderr, Listen: true,
		Limits: sandbox.JobLimits{Memory: s.MaxMemory, Processes: maxProcesses, Scratch: s.MaxMemory / 2, FileSize: s.MaxMemory / 2},
	})
	if err != nil {
		return nil, err
	}
	return &process{in: job.ReadCloser, out: job.WriteCloser, listener: job.Listener(), private: true, pid: job.ID(), stderr: stderr, controls: sandboxed{job}}, nil
}

func (s sandboxed) pause()                { s.Pause() }
func (s sandboxed) resume()               { s.Resume() }
func (s sandboxed) kill()                 { s.Kill() }
func (s sandboxed) done() <-chan struct{} { return nil }
func (s sandboxed) stop() error           { s.Close(); return nil }
func (s sandboxed) outOfMemory() bool     { return s.OutOfMemory() }

// readable lists the directories that a browser in the sandbox reads in addition to the directories
// of the system. These are its own directory and the operator's settings for it.
func readable(executable string) (list []string) {
	candidates := []string{"/etc/chromium", "/etc/chromium.d", "/etc/opt/chrome", filepath.Dir(executable)}
	if path, err := filepath.EvalSymlinks(executable); err == nil {
		candidates = append(candidates, filepath.Dir(path))
	}
	for _, dir := range candidates {
		if _, err := os.Stat(dir); err == nil && !slices.Contains(list, dir) && !strings.HasPrefix(dir+"/", "/usr/") && dir != "/bin" {
			list = append(list, dir)
		}
	}
	return list
}
