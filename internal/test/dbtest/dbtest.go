// Package dbtest starts real PostgreSQL, MariaDB, RabbitMQ and Pulsar servers for tests. Each server
// starts once for the tests of a package, on a loopback port and in a temporary
// directory, and stops after them.
//
//	func TestMain(m *testing.M) { os.Exit(dbtest.RunTests(m)) }
//
//	db := dbtest.NewPostgres(t) // an empty database for t only
//	b := dbtest.StartRabbitMQ(t) // a broker that the tests of the package share
//
// Only tests import it.
package dbtest

import (
	"bufio"
	"cmp"
	"errors"
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
	"time"

	"github.com/rolecall/rolecall/internal/procgroup"
	"github.com/rolecall/rolecall/internal/test/external"
	"github.com/rolecall/rolecall/internal/test/testcert"
)

// Database contains the parameters of a connection to a database.
type Database struct {
	Host     string
	Port     int
	User     string // has all privileges on this database
	Password string
	Name     string
}

// RunTests runs a package's tests and stops the servers that they started. TestMain
// calls it and exits with the status it returns.
func RunTests(m *testing.M) int {
	defer func() {
		for _, s := range []*server{&postgres, &mariadb, &rabbitmq, &pulsar} {
			s.stop()
		}
	}()
	return m.Run()
}

// server is one database server of this process.
type server struct {
	name      string
	account   string        // runs the server when the tests run as root; "" is root
	readyLine string        // the line it logs then
	startTime time.Duration // until then at most; 0 is a minute
	prepare   func(s *server) error
	argv      func(s *server) []string
	env       func(s *server) []string // in addition; nil has none

	once          sync.Once
	err           error
	dir           string
	port          int
	ports         []int            // further ports that it needs
	group         *procgroup.Group // nil while the server does not run
	databaseCount atomic.Int64     // databases that have got a name
	owner         *owner           // of the directory and the process; nil is the tests' own
}

// owner is a user and a group, as the system numbers them.
type owner struct{ uid, gid uint32 }

// password belongs to the only database account. Only this machine can connect.
const password = "it's \"secret\" @/:"

// ensureStarted starts the server once. With -short it skips the test.
func (s *server) ensureStarted(t testing.TB, programs ...string) {
	t.Helper()
	external.Skip(t, s.name)
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Fatalf("%s is not installed: %v: run make deps", s.name, err)
		}
	}
	s.once.Do(func() { s.err = s.start() })
	if s.err != nil {
		t.Fatalf("start %s: %v", s.name, s.err)
	}
}

// start prepares the data directory and starts the server.
func (s *server) start() (err error) {
	if s.dir, err = os.MkdirTemp("", "dbtest-"+s.name+"-"); err != nil {
		return err
	}
	if err := s.findAccount(os.Geteuid()); err != nil {
		return err
	}
	if s.owner != nil {
		if err := os.Chown(s.dir, int(s.owner.uid), int(s.owner.gid)); err != nil {
			return err
		}
	}
	if s.port, err = freePort(); err != nil {
		return err
	}
	if err := s.prepare(s); err != nil {
		return err
	}
	return s.run(s.argv(s))
}

// run starts the program and returns when it accepts connections.
func (s *server) run(argv []string) error {
	cmd := s.command(argv...)
	log, stderr := io.Pipe()
	cmd.Stderr = stderr
	group := procgroup.New(cmd)
	if err := group.Start(); err != nil {
		return err
	}
	s.group = group
	go func() {
		<-group.Ended()
		stderr.Close()
	}()
	return s.awaitReady(log)
}

// awaitReady reads the log until readyLine appears.
func (s *server) awaitReady(log io.Reader) error {
	ready := make(chan error, 1)
	go func() {
		var tail strings.Builder
		lines := bufio.NewScanner(log)
		for lines.Scan() {
			if strings.Contains(lines.Text(), s.readyLine) {
				ready <- nil
				io.Copy(io.Discard, log)
				return
			}
			tail.WriteString(lines.Text() + "\n")
		}
		ready <- fmt.Errorf("the server exited:\n%s", tail.String())
	}()
	select {
	case err := <-ready:
		return err
	case <-time.After(cmp.Or(s.startTime, time.Minute)):
		return fmt.Errorf("the server was not ready in time")
	}
}

// stop stops the server, if it runs, and removes its directory.
func (s *server) stop() {
	if s.group != nil {
		s.group.Signal(syscall.SIGQUIT) // stops all servers immediately
		select {
		case <-s.group.Ended():
		case <-time.After(5 * time.Second):
			s.kill()
		}
	}
	if s.dir != "" {
		os.RemoveAll(s.dir)
	}
}

// kill kills the server and waits for its end.
func (s *server) kill() {
	s.group.Signal(syscall.SIGKILL)
	<-s.group.Ended()
}

// command returns a command that runs as the server's account. Its temporary files are its own: a MariaDB that
// starts deletes those of other servers in the same folder.
func (s *server) command(argv ...string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "TMPDIR=" + s.dir, "LC_ALL=C.UTF-8", "PGPASSWORD=" + password}
	if s.env != nil {
		cmd.Env = append(cmd.Env, s.env(s)...)
	}
	cmd.SysProcAttr = procgroup.Attributes()
	if s.owner != nil {
		runAs(cmd.SysProcAttr, *s.owner)
	}
	return cmd
}

// runProgram runs a program and returns its output in the error.
func (s *server) runProgram(argv ...string) error {
	goruntime.LockOSThread() // the process dies with the thread that starts it
	defer goruntime.UnlockOSThread()
	if out, err := s.command(argv...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(argv[0]), err, out)
	}
	return nil
}

// findAccount sets the owner to the server's account if the tests run as root, because
// most servers refuse to run as root.
func (s *server) findAccount(euid int) error {
	if euid != 0 || s.account == "" {
		return nil
	}
	found, err := lookupAccount(s.account)
	if err != nil {
		return fmt.Errorf("find the account %s, because %s does not run as root: %w", s.account, s.name, err)
	}
	s.owner = &found
	return nil
}

// writeFiles writes files into the directory of the server.
func (s *server) writeFiles(texts map[string]string) error {
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// The certificate of a server with TLS and its key, in its directory.
const (
	certFile = "cert.pem"
	keyFile  = "key.pem"
)

// writeCertificate writes the certificate and the key, which the account of the server may read.
func (s *server) writeCertificate() error {
	cert, key := filepath.Join(s.dir, certFile), filepath.Join(s.dir, keyFile)
	if _, err := testcert.Write(cert, key, 1); err != nil || s.owner == nil {
		return err
	}
	return errors.Join(os.Chown(cert, int(s.owner.uid), int(s.owner.gid)), os.Chown(key, int(s.owner.uid), int(s.owner.gid)))
}

// addPorts finds further ports of the server.
func (s *server) addPorts(count int) error {
	for range count {
		port, err := freePort()
		if err != nil {
			return err
		}
		s.ports = append(s.ports, port)
	}
	return nil
}

// newDatabaseName returns an unused database name.
func (s *server) newDatabaseName() string {
	return "test_" + strconv.FormatInt(s.databaseCount.Add(1), 10)
}

// connection returns the parameters of a connection to a database.
func (s *server) connection(user, name string) Database {
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
