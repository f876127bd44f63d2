package dbtest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pulsarBuild is the directory where internal/test/pulsarbroker/install.sh has put the broker.
var pulsarBuild string

// The broker, its bookkeeper and its metadata are one process, which Pulsar names standalone.
var pulsar = server{
	name: "pulsar", readyLine: "Created namespace public/default", startTime: 5 * time.Minute,
	prepare: func(s *server) error {
		if err := errors.Join(s.addPorts(4), s.writeCertificate()); err != nil {
			return err
		}
		return s.writeFiles(map[string]string{"broker.conf": s.pulsarConfig(), "log4j2.properties": pulsarLog})
	},
	argv: func(s *server) []string {
		classpath, _ := os.ReadFile(filepath.Join(pulsarBuild, "classpath"))
		return []string{
			"java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.configurationFile=" + filepath.Join(s.dir, "log4j2.properties"),
			"-cp", filepath.Join(pulsarBuild, "classes") + ":" + strings.TrimSpace(string(classpath)), "org.apache.pulsar.PulsarStandaloneStarter",
			"--config", filepath.Join(s.dir, "broker.conf"), "--no-functions-worker", "--no-stream-storage", "--num-bookies", "1",
			"--bookkeeper-port", fmt.Sprint(s.ports[3]), "--bookkeeper-dir", filepath.Join(s.dir, "ledgers"), "--metadata-dir", filepath.Join(s.dir, "metadata"),
		}
	},
}

// pulsarLog makes the broker log to stderr, without its configuration of 20 KB.
const pulsarLog = `rootLogger.level = info
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.target = SYSTEM_ERR
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %p %c{1} %.-500m%n%throwable
`

// Listeners of the broker, each with an address that the broker names to clients.
const (
	pulsarListener = "direct"
	// ProxiedListener names the address of PulsarProxy, for both kinds of connections.
	ProxiedListener = "proxied"
)

// pulsarConfig returns the configuration of the broker. Its clients need a token.
func (s *server) pulsarConfig() string {
	in := func(name string) string { return filepath.Join(s.dir, name) }
	lines := []string{
		fmt.Sprintf("brokerServicePort=%d", s.port), fmt.Sprintf("brokerServicePortTls=%d", s.ports[0]), fmt.Sprintf("webServicePort=%d", s.ports[1]),
		"bindAddress=127.0.0.1", "allowLoopback=true", "listeningInterface=lo", "diskUsageThreshold=0.999", "diskUsageWarnThreshold=0.999", "diskUsageLwmThreshold=0.999", "clusterName=standalone", "internalListenerName=" + pulsarListener,
		fmt.Sprintf("advertisedListeners=%[1]s:pulsar://127.0.0.1:%[2]d,%[1]s:pulsar+ssl://127.0.0.1:%[3]d,%[4]s:pulsar://127.0.0.1:%[5]d", pulsarListener, s.port, s.ports[0], ProxiedListener, s.ports[2]),
		"managedLedgerDefaultEnsembleSize=1", "managedLedgerDefaultWriteQuorum=1", "managedLedgerDefaultAckQuorum=1",
		"tlsCertificateFilePath=" + in(certFile), "tlsKeyFilePath=" + in(keyFile), "narExtractionDirectory=" + s.dir,
		"authenticationEnabled=true", "authenticationProviders=org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
		"tokenSecretKey=data:;base64," + base64.StdEncoding.EncodeToString([]byte(pulsarSecret)),
		"brokerClientAuthenticationPlugin=org.apache.pulsar.client.impl.auth.AuthenticationToken",
		"brokerClientAuthenticationParameters=token:" + PulsarToken("broker", pulsarSecret),
	}
	return strings.Join(lines, "\n") + "\n"
}

// pulsarSecret signs the tokens of clients.
const pulsarSecret = "a secret of at least 32 bytes, which HMAC-SHA256 needs"

// PulsarToken returns a token for a client. The broker accepts those that its secret signed.
func PulsarToken(subject, secret string) string {
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"HS256"}`)) + "." + encode([]byte(`{"sub":"`+subject+`"}`))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return text + "." + encode(mac.Sum(nil))
}

// StartPulsar returns the real Pulsar that the tests of a package share. build is where
// internal/test/pulsarbroker/install.sh has put it. With -short it skips the test.
func StartPulsar(t testing.TB, build string) Broker {
	t.Helper()
	if _, err := os.Stat(filepath.Join(build, "ready")); err != nil {
		t.Fatalf("Pulsar is not installed: %v: run make test-pulsar", err)
	}
	var err error
	if pulsarBuild, err = filepath.Abs(build); err != nil {
		t.Fatal(err)
	}
	pulsar.ensureStarted(t, "java")
	createPulsarTopics(t)
	return Broker{
		Host: "127.0.0.1", Port: pulsar.port, TLSPort: pulsar.ports[0], Password: PulsarToken("tester", pulsarSecret),
		CA: filepath.Join(pulsar.dir, certFile), Key: filepath.Join(pulsar.dir, keyFile),
	}
}

// PulsarProxy returns the address that the broker names to clients of ProxiedListener, HOST:PORT. A
// test may listen there.
func PulsarProxy() string { return fmt.Sprintf("127.0.0.1:%d", pulsar.ports[2]) }

// KillPulsar kills the server of StartPulsar, as a power cut does. restart starts it again, on the
// same port.
func KillPulsar(t testing.TB) (restart func()) {
	t.Helper()
	pulsar.kill()
	return func() {
		t.Helper()
		pulsar.readyLine = "messaging service is ready"
		if err := pulsar.run(pulsar.argv(&pulsar)); err != nil {
			t.Fatalf("start Pulsar again: %v", err)
		}
	}
}

// createPulsarTopics creates the tenant and the namespaces of TrustGraph, as its installation does.
func createPulsarTopics(t testing.TB) {
	t.Helper()
	AskPulsar(t, http.MethodPut, "tenants/tg", `{"allowedClusters": ["standalone"]}`)
	for _, class := range []string{"flow", "request", "response", "notify"} {
		AskPulsar(t, http.MethodPut, "namespaces/tg/"+class, "")
	}
}

// AskPulsar sends a request to the administration of the broker. It returns the body of the response.
// Creating again what exists is no error.
func AskPulsar(t testing.TB, method, path, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, fmt.Sprintf("http://127.0.0.1:%d/admin/v2/%s", pulsar.ports[1], path), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+PulsarToken("tester", pulsarSecret))
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 && response.StatusCode != http.StatusConflict {
		t.Fatalf("%s %s: %s %s %v", method, path, response.Status, text, err)
	}
	return string(text)
}
