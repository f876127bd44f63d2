// Package dbtest owns the database servers of tests: real ones, PostgreSQL and
// MariaDB, each started once for the tests of a package, on a loopback port and
// in a directory of its own, and stopped after them.
//
//	func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }
//
//	db := dbtest.Postgres(t) // an empty database of t's own
//
// Only tests import it.
package dbtest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/rolecall/rolecall/internal/test/short"
	"time"
)

// Database says how to reach a database.
type Database struct {
	Host     string
	Port     int
	User     string // may do everything in this database
	Password string
	Name     string
}

// Main runs a package's tests and stops the servers that they started; TestMain
// calls it and exits with what it gives.
func Main(m *testing.M) int {
	defer func() {
		for _, s := range []*server{&postgres, &mariadb} {
			s.stop()
		}
	}()
	return m.Run()
}

// server is one database server of this process.
type server struct {
	name    string
	account string // who runs it when the tests are root's
	ready   string // the line it logs then
	prepare func(s *server) error
	argv    func(s *server) []string

	once sync.Once
	err  error
	dir  string
	port int
	cmd  *exec.Cmd
	gone chan struct{} // closed when it has ended
	made atomic.Int64  // databases
}

// password is of the only account a server has; it is open to this machine.
const password = "it's \"secret\" @/:"

// started starts the server, once. With -short it skips the test.
func (s *server) started(t testing.TB, programs ...string) {
	t.Helper()
	short.SkipReal(t, s.name)
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Fatalf("there is no %s: %v: run make deps", s.name, err)
		}
	}
	s.once.Do(func() { s.err = s.start() })
	if s.err != nil {
		t.Fatalf("start %s: %v", s.name, s.err)
	}
}

func (s *server) start() (err error) {
	if s.dir, err = os.MkdirTemp("", "dbtest-"+s.name+"-"); err != nil {
		return err
	}
	if err := s.release(s.dir); err != nil {
		return err
	}
	if s.port, err = freePort(); err != nil {
		return err
	}
	if err := s.prepare(s); err != nil {
		return err
	}
	return s.run(s.argv(s))
}

// run starts the program and returns when it takes connections. It dies with
// the thread that started it, so that thread waits for it.
func (s *server) run(argv []string) error {
	s.cmd, s.gone = s.command(argv...), make(chan struct{})
	log, err := s.cmd.StderrPipe()
	if err != nil {
		return err
	}
	begun := make(chan error)
	go func() {
		goruntime.LockOSThread()
		err := s.cmd.Start()
		begun <- err
		if err == nil {
			s.cmd.Process.Wait()
			close(s.gone)
		}
	}()
	if err := <-begun; err != nil {
		s.cmd = nil
		return err
	}
	return s.awaitReady(log)
}

func (s *server) awaitReady(log io.Reader) error {
	ready := make(chan error, 1)
	go func() {
		var tail strings.Builder
		lines := bufio.NewScanner(log)
		for lines.Scan() {
			if strings.Contains(lines.Text(), s.ready) {
				ready <- nil
				io.Copy(io.Discard, log)
				return
			}
			tail.WriteString(lines.Text() + "\n")
		}
		ready <- fmt.Errorf("it ended:\n%s", tail.String())
	}()
	select {
	case err := <-ready:
		return err
	case <-time.After(time.Minute):
		return fmt.Errorf("it was not ready after a minute")
	}
}

// stop ends the server, if it runs, and removes what it left.
func (s *server) stop() {
	if s.cmd != nil {
		s.cmd.Process.Signal(syscall.SIGQUIT) // at once, for both
		select {
		case <-s.gone:
		case <-time.After(5 * time.Second):
			s.cmd.Process.Kill()
			<-s.gone
		}
	}
	if s.dir != "" {
		os.RemoveAll(s.dir)
	}
}

// command gives a program that runs as the server's account does.
func (s *server) command(argv ...string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "LC_ALL=C.UTF-8", "PGPASSWORD=" + password}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if uid, gid, ok := s.ids(); ok {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: gid}
	}
	return cmd
}

// must runs a program and fails with what it said.
func (s *server) must(argv ...string) error {
	goruntime.LockOSThread() // what it starts dies with its thread
	defer goruntime.UnlockOSThread()
	if out, err := s.command(argv...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(argv[0]), err, out)
	}
	return nil
}

// release hands a path to the server's account.
func (s *server) release(path string) error {
	uid, gid, ok := s.ids()
	if !ok {
		return nil
	}
	return os.Chown(path, int(uid), int(gid))
}

// ids gives the server's account when the tests are root's: the servers refuse
// to be.
func (s *server) ids() (uid, gid uint32, ok bool) {
	if os.Geteuid() != 0 {
		return 0, 0, false
	}
	u, g, err := lookup(s.account)
	return u, g, err == nil
}

// fresh names a database that is not there yet.
func (s *server) fresh() string { return "test_" + strconv.FormatInt(s.made.Add(1), 10) }

// database says how to reach one.
func (s *server) database(user, name string) Database {
	return Database{Host: "127.0.0.1", Port: s.port, User: user, Password: password, Name: name}
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
