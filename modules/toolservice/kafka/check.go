package kafka

import (
	"crypto/tls"
	"net"
	"strings"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolservice/broker"
)

// settings are what only this kind has.
type settings struct {
	Mechanism string `json:"mechanism"` // how the password is presented; "" is PLAIN
}

// Schemes of URLs.
const (
	plainScheme = "kafka://"
	tlsScheme   = "kafkas://"
)

// mechanism returns how the client signs in; nil without a user.
func (s settings) mechanism(c broker.Config) sasl.Mechanism {
	switch {
	case c.User == "":
		return nil
	case s.Mechanism == "SCRAM-SHA-256":
		return scram.Auth{User: c.User, Pass: c.Password}.AsSha256Mechanism()
	case s.Mechanism == "SCRAM-SHA-512":
		return scram.Auth{User: c.User, Pass: c.Password}.AsSha512Mechanism()
	}
	return plain.Auth{User: c.User, Pass: c.Password}.AsMechanism()
}

// check reports what is wrong with a configuration; it is the Check of Kind.
func check(c broker.Config) error {
	wrong := func(text string) error {
		return errcode.New(errcode.InvalidConfig, "broker %s: %s", c.Name, text)
	}
	var s settings
	switch {
	case c.ReadSettings(&s) != nil:
		return wrong("settings: write an object with mechanism: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")
	case s.Mechanism != "" && s.Mechanism != "PLAIN" && s.Mechanism != "SCRAM-SHA-256" && s.Mechanism != "SCRAM-SHA-512":
		return wrong("settings: the mechanism is PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")
	case c.Listen != "":
		return wrong("listen: a broker of type kafka is never embedded")
	case len(seeds(c.URL)) == 0:
		return wrong("url: write kafka://HOST:PORT or kafkas://HOST:PORT, with commas between the servers of a cluster, and user and password in fields of their own")
	case (c.User == "") != (c.Password == ""):
		return wrong("user and password belong together")
	case s.Mechanism != "" && c.User == "":
		return wrong("settings: the mechanism needs user and password")
	case (c.TLS.Cert == "") != (c.TLS.Key == ""):
		return wrong("tls: cert and key belong together")
	case c.TLS != broker.TLSFiles{} && !strings.HasPrefix(c.URL, tlsScheme):
		return wrong("tls: it needs a url that begins with kafkas://")
	}
	return nil
}

// seeds returns the servers of a URL, HOST:PORT each; nil if it is not one.
func seeds(text string) []string {
	rest, ok := strings.CutPrefix(text, plainScheme)
	if !ok {
		if rest, ok = strings.CutPrefix(text, tlsScheme); !ok {
			return nil
		}
	}
	list := strings.Split(rest, ",")
	for _, address := range list {
		if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" || strings.ContainsAny(address, "@/?#") {
			return nil
		}
	}
	return list
}

// readTLS reads the files of a configuration. It returns nil for a URL without TLS.
func readTLS(c broker.Config) (*tls.Config, error) {
	if !strings.HasPrefix(c.URL, tlsScheme) {
		return nil, nil
	}
	return c.ReadTLS()
}
