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

// maxStderr is how many bytes of what the browser wrote to stderr are kept for the log.
const maxStderr = 8 << 10

// process is a browser that runs, and the folder that is all it may keep.
type process struct {
	folder string
	in     *os.File // what the browser says
	out    *os.File // what it is told
	cmd    *exec.Cmd
	group  *procgroup.Group // that it leads; set when it was started
	stderr textutil.TailBuffer
	done   chan struct{} // closed when it has ended
}

// launch starts the browser. It dies with this process.
func launch(executable string, s Settings) (*process, error) {
	folder, err := os.MkdirTemp(shortTemp(), "rolecall-chrome-")
	if err != nil {
		return nil, err
	}
	p := &process{folder: folder, stderr: textutil.TailBuffer{Size: maxStderr}, done: make(chan struct{})}
	if err := p.start(executable, s); err != nil {
		os.RemoveAll(folder)
		return nil, err
	}
	return p, nil
}

// shortTemp gives the folder for temporary files. The browser makes a socket
// below it, and the path of a socket has at most 107 bytes.
func shortTemp() string {
	if dir := os.TempDir(); len(dir) <= 24 {
		return dir
	}
	return "/tmp"
}

func (p *process) start(executable string, s Settings) error {
	theirIn, out, err := os.Pipe()
	if err != nil {
		return err
	}
	in, theirOut, err := os.Pipe()
	if err != nil {
		theirIn.Close()
		out.Close()
		return err
	}
	defer theirIn.Close()
	defer theirOut.Close()
	p.in, p.out, p.cmd = in, out, command(executable, p.folder, s)
	p.cmd.Stderr = &p.stderr
	p.cmd.ExtraFiles = []*os.File{theirIn, theirOut} // 3 and 4, as the browser wants them
	if err := p.run(); err != nil {
		in.Close()
		out.Close()
		return err
	}
	return nil
}

// command gives the command line: a shell limits the memory of the browser and
// of all it starts, and becomes it. Nothing of our environment goes with it.
func command(executable, folder string, s Settings) *exec.Cmd {
	limit := strconv.FormatInt(s.MaxMemory>>10, 10)
	args := append([]string{"-c", `ulimit -d "$1" && ulimit -c 0; shift; exec "$@"`, "chrome", limit, executable}, flags(folder, s)...)
	cmd := exec.Command("/bin/sh", args...)
	cmd.Dir = folder
	cmd.Env = []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "HOME=" + folder, "TMPDIR=" + folder,
		"XDG_CONFIG_HOME=" + filepath.Join(folder, "config"), "XDG_CACHE_HOME=" + filepath.Join(folder, "cache"),
		"DBUS_SESSION_BUS_ADDRESS=disabled:", "DBUS_SYSTEM_BUS_ADDRESS=disabled:",
	}
	cmd.WaitDelay = time.Second
	ownProcessGroup(cmd)
	return cmd
}

// run starts the browser from a thread that stays until it ends: the kernel
// ends it with its parent thread.
func (p *process) run() error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		p.group = procgroup.Of(p.cmd)
		started <- err
		if err == nil {
			_ = p.group.Wait() // how it ended is in stderr
			close(p.done)
		}
	}()
	return <-started
}

// stop ends the browser and all it started, and removes its folder.
func (p *process) stop() error {
	p.kill()
	<-p.done
	p.in.Close()
	p.out.Close()
	var err error
	for range 100 { // who dies may still write
		if err = os.RemoveAll(p.folder); err == nil {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("remove the folder of the browser: %w", err)
}
