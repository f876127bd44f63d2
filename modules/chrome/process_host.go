package chrome

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/rolecall/rolecall/internal/procgroup"
	"github.com/rolecall/rolecall/internal/textutil"
)

// hostProcess is a browser that runs outside the sandbox, with the only directory that it writes
// to.
type hostProcess struct {
	*procgroup.Group
	dir     string
	cmd     *exec.Cmd
	cleaner *cleaner
	pipes   []io.Closer // our ends of its pipes, and the listener
}

// launchOnHost starts the browser outside the sandbox. On Linux the kernel kills it when this
// process ends.
func launchOnHost(executable string, s Settings) (*process, error) {
	dir, err := os.MkdirTemp(shortTemp(), "rolecall-chrome-")
	if err != nil {
		return nil, err
	}
	h := &hostProcess{dir: dir}
	if h.cleaner, err = startCleaner(dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	p, err := h.start(executable, s)
	if err != nil {
		return nil, errors.Join(err, h.remove())
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
func (h *hostProcess) start(executable string, s Settings) (_ *process, err error) {
	childIn, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer childIn.Close()
	h.pipes = append(h.pipes, out)
	in, childOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer childOut.Close()
	h.pipes = append(h.pipes, in)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h.pipes = append(h.pipes, listener)
	p := &process{in: in, out: out, listener: listener, stderr: &textutil.TailBuffer{Size: maxStderr}, controls: h}
	args := arguments(executable, h.dir, s, !s.NoSandbox)
	h.cmd = exec.Command(args[0], args[1:]...)
	h.cmd.Dir, h.cmd.Env, h.cmd.WaitDelay = h.dir, environment(h.dir), time.Second
	h.cmd.Stdin, h.cmd.Stdout, h.cmd.Stderr = childIn, childOut, p.stderr
	h.cmd.SysProcAttr = procgroup.Attributes()
	h.Group = procgroup.New(h.cmd)
	if err := h.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", executable, err)
	}
	p.pid = h.cmd.Process.Pid
	return p, nil
}

func (h *hostProcess) kill() { h.Signal(syscall.SIGKILL) }

// stop implements controls.
func (h *hostProcess) stop() error {
	h.kill()
	<-h.Ended()
	return h.remove()
}

func (h *hostProcess) done() <-chan struct{} { return h.Ended() }

func (h *hostProcess) outOfMemory() bool { return false }

// remove closes the pipes and removes the directory.
func (h *hostProcess) remove() (err error) {
	for _, f := range h.pipes {
		_ = f.Close() // the browser has ended
	}
	defer h.cleaner.stop()
	for range 100 { // a process that ends may still write
		if err = os.RemoveAll(h.dir); err == nil {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("remove the directory of the browser: %w", err)
}

// cleaner is a process that removes a directory when this process ends, however it ends.
type cleaner struct {
	cmd   *exec.Cmd
	alive io.Closer // the cleaner's stdin, which the kernel closes with this process
}

// startCleaner starts a cleaner. It ignores signals that end this process. It tries again while
// the browser, which the kernel kills at the same time, still writes.
func startCleaner(dir string) (*cleaner, error) {
	cmd := exec.Command("/bin/sh", "-c", `trap "" TERM INT HUP; read -r line; n=0; until rm -rf "$1" || [ $n -ge 50 ]; do n=$((n+1)); sleep 0.1; done`, "cleaner", dir)
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin"}
	cmd.SysProcAttr = newSession()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the shell that removes the directory of the browser: %w", err)
	}
	return &cleaner{cmd, stdin}, nil
}

// stop ends the cleaner after it has removed what is left.
func (c *cleaner) stop() {
	_ = c.alive.Close()
	_ = c.cmd.Wait()
}
