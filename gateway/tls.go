package gateway

import (
	"crypto/tls"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// certificateInterval is how often the files of a certificate are looked at.
const certificateInterval = time.Second

// WithTLS returns a listener that serves TLS 1.2 and newer on the connections of l, with the
// certificate in two PEM files. When the files change, new connections get the new certificate.
// If that cannot be read, the one before stays, and log says why; nil discards. The error names
// the file.
func WithTLS(l net.Listener, certFile, keyFile string, log *slog.Logger) (net.Listener, error) {
	return withTLS(l, certFile, keyFile, log, certificateInterval)
}

// withTLS is WithTLS with the time between two looks at the files.
func withTLS(l net.Listener, certFile, keyFile string, log *slog.Logger, interval time.Duration) (net.Listener, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log, interval: interval}
	c.seen, _ = statFiles(certFile, keyFile) // before reading, so that no change is missed
	loaded, err := ReadCertificate(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	c.active.Store(loaded)
	c.nextCheck = time.Now().Add(interval)
	return tls.NewListener(l, &tls.Config{
		MinVersion: tls.VersionTLS12,
		// A trackedConn has one request at a time, so there is no HTTP/2.
		NextProtos:     []string{"http/1.1"},
		GetCertificate: c.get,
	}), nil
}

// ReadCertificate reads a certificate and its key from PEM files. The error names the file.
func ReadCertificate(certFile, keyFile string) (*tls.Certificate, error) {
	cert, err := os.ReadFile(certFile)
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, fmt.Errorf("read the key of the certificate: %w", err)
	}
	loaded, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("the certificate %s with the key %s: %w", certFile, keyFile, err)
	}
	return &loaded, nil
}

// certificate is a certificate in files. It is safe for concurrent use.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger
	interval          time.Duration // between two looks at the files
	active            atomic.Pointer[tls.Certificate]

	mu        sync.Mutex    // guards what follows; only TryLock takes it, so no request waits for it
	nextCheck time.Time     // the files are not looked at before
	seen      []fs.FileInfo // of the certificate in use
	failure   string        // of the last attempt to read the files, which is logged once
}

// get implements tls.Config.GetCertificate.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c.mu.TryLock() {
		c.reload()
		c.mu.Unlock()
	}
	return c.active.Load(), nil
}

// reload reads the files again if they have changed since they were read. Files that could not be read
// are tried again at the next look. It must be called with mu held.
func (c *certificate) reload() {
	now := time.Now()
	if now.Before(c.nextCheck) {
		return
	}
	c.nextCheck = now.Add(c.interval)
	files, err := statFiles(c.certFile, c.keyFile)
	if err == nil && sameFiles(files, c.seen) {
		return
	}
	loaded, err := ReadCertificate(c.certFile, c.keyFile)
	if err != nil {
		if err.Error() != c.failure {
			c.failure = err.Error()
			c.log.Warn("the certificate has changed and cannot be used; the one before stays", "error", err)
		}
		return
	}
	c.seen, c.failure = files, ""
	c.active.Store(loaded)
	c.log.Info("the certificate is reloaded", "cert", c.certFile)
}

// statFiles returns what tells whether files have changed; nil if one is missing.
func statFiles(paths ...string) (list []fs.FileInfo, err error) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		list = append(list, info)
	}
	return list, nil
}

// sameFiles reports whether no file of a list has changed.
func sameFiles(a, b []fs.FileInfo) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !os.SameFile(a[i], b[i]) || !a[i].ModTime().Equal(b[i].ModTime()) || a[i].Size() != b[i].Size() {
			return false
		}
	}
	return true
}
