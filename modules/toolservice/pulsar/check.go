package pulsar

import (
	"crypto/tls"
	"net"
	"strings"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolservice/broker"
)

// settings are what only this kind has.
type settings struct {
	Listener string `json:"listener"` // the name of the broker's listener; "" is its default
}

// Schemes of URLs.
const (
	plainScheme = "pulsar://"
	tlsScheme   = "pulsar+ssl://"
)

// check reports what is wrong with a configuration; it is the Check of Kind.
func check(c broker.Config) error {
	wrong := func(text string) error {
		return errcode.New(errcode.InvalidConfig, "broker %s: %s", c.Name, text)
	}
	var s settings
	switch {
	case c.ReadSettings(&s) != nil:
		return wrong("settings: write an object with listener, the name of a listener of the broker")
	case c.Listen != "":
		return wrong("listen: a broker of type pulsar is never embedded")
	case !isURL(c.URL):
		return wrong("url: write pulsar://HOST:PORT or pulsar+ssl://HOST:PORT, with commas between the servers of a cluster, and user and password in fields of their own")
	case c.User != "" && c.Password == "":
		return wrong("user: it needs a password; a token is a password without a user")
	case (c.TLS.Cert == "") != (c.TLS.Key == ""):
		return wrong("tls: cert and key belong together")
	case c.TLS != broker.TLSFiles{} && !strings.HasPrefix(c.URL, tlsScheme):
		return wrong("tls: it needs a url that begins with pulsar+ssl://")
	}
	return nil
}

// isURL reports whether a text names servers and nothing else.
func isURL(text string) bool {
	rest, ok := strings.CutPrefix(text, plainScheme)
	if !ok {
		rest, ok = strings.CutPrefix(text, tlsScheme)
	}
	for address := range strings.SplitSeq(rest, ",") {
		host, port, err := net.SplitHostPort(address)
		ok = ok && err == nil && host != "" && port != "" && !strings.ContainsAny(address, "@/?#")
	}
	return ok
}

// readTLS reads the files of a configuration. It returns nil for a URL without TLS.
func readTLS(c broker.Config) (*tls.Config, error) {
	if !strings.HasPrefix(c.URL, tlsScheme) {
		return nil, nil
	}
	return c.ReadTLS()
}

// authentication returns how the client signs in: with user and password, with a token, with its
// certificate, or not at all.
func authentication(c broker.Config, files *tls.Config) (pulsar.Authentication, error) {
	switch {
	case c.User != "":
		return pulsar.NewAuthenticationBasic(c.User, c.Password)
	case c.Password != "":
		return pulsar.NewAuthenticationToken(c.Password), nil
	case c.TLS.Cert != "":
		return pulsar.NewAuthenticationFromTLSCertSupplier(func() (*tls.Certificate, error) { return &files.Certificates[0], nil }), nil
	}
	return nil, nil
}
