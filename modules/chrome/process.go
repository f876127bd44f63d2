package chrome

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/rolecall/rolecall/internal/procgroup"
	"github.com/rolecall/rolecall/internal/textutil"
)

// maxStderr is how many bytes of the browser's stderr are kept for the log.
const maxStderr = 8 << 10

// process is the process of a browser, with the only directory that it writes to.
type process struct {
	dir    string
	in     *os.File // messages from the browser
	out    *os.File // messages to the browser
	cmd    *exec.Cmd
	group  *procgroup.Group // set when the browser was started
	stderr textutil.TailBuffer
	done   chan struct{} // closed when it has ended
}

// launch starts the browser. On Linux the kernel kills it when this process ends.
func launch(executable string, s Settings) (*process, error) {
	dir, err := os.MkdirTemp(shortTemp(), "rolecall-chrome-")
	if err != nil {
		return nil, err
	}
	p := &process{dir: dir, stderr: textutil.TailBuffer{Size: maxStderr}, done: make(chan struct{})}
	if err := p.start(executable, s); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return p, nil
}

// shortTemp returns the directory for temporary files, or /tmp if its path is long. The browser
// creates a socket in it, and the path of a socket has at most 107 bytes.
func shortTemp() string {
	if dir := os.TempDir(); len(dir) <= 24 {
		return dir
	}
	return "/tmp"
}

// start starts the browser with pipes for its messages.
func (p *process) start(executable string, s Settings) error {
	childIn, out, err := os.Pipe()
	if err != nil {
		return err
	}
	in, childOut, err := os.Pipe()
	if err != nil {
		childIn.Close()
		out.Close()
		return err
	}
	defer childIn.Close()
	defer childOut.Close()
	p.in, p.out, p.cmd = in, out, command(executable, p.dir, s)
	p.cmd.Stderr = &p.stderr
	p.cmd.ExtraFiles = []*os.File{childIn, childOut} // file descriptors 3 and 4: --remote-debugging-pipe
	if err := p.run(); err != nil {
		in.Close()
		out.Close()
		return err
	}
	return nil
}

// command returns the command: a shell sets memory limits, which the browser and its children
// inherit, and executes the browser. The browser gets none of our environment.
func command(executable, dir string, s Settings) *exec.Cmd {
	limit := strconv.FormatInt(s.MaxMemory>>10, 10)
	args := append([]string{"-c", `ulimit -d "$1" && ulimit -c 0; shift; exec "$@"`, "chrome", limit, executable}, flags(dir, s)...)
	cmd := exec.Command("/bin/sh", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "HOME=" + dir, "TMPDIR=" + dir,
		"XDG_CONFIG_HOME=" + filepath.Join(dir, "config"), "XDG_CACHE_HOME=" + filepath.Join(dir, "cache"),
		"DBUS_SESSION_BUS_ADDRESS=disabled:", "DBUS_SYSTEM_BUS_ADDRESS=disabled:",
	}
	cmd.WaitDelay = time.Second
	newProcessGroup(cmd)
	return cmd
}

// run starts the browser from a thread that exists until the browser has ended, since the
// kernel kills the browser when its parent thread ends.
func (p *process) run() error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		p.group = procgroup.Of(p.cmd)
		started <- err
		if err == nil {
			_ = p.group.Wait() // the reason is in stderr
			close(p.done)
		}
	}()
	return <-started
}

// stop kills the browser and its children, and removes its directory.
func (p *process) stop() error {
	p.kill()
	<-p.done
	p.in.Close()
	p.out.Close()
	var err error
	for range 100 { // a process that ends may still write
		if err = os.RemoveAll(p.dir); err == nil {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("remove the directory of the browser: %w", err)
}
