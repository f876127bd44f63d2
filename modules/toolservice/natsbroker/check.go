package natsbroker

import (
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolservice/broker"
)

// check reports what is wrong with a configuration; it is the Check of Kind.
func check(c broker.Config) error {
	wrong := func(format string, args ...any) error {
		return errcode.New(errcode.InvalidConfig, "broker %s: "+format, append([]any{c.Name}, args...)...)
	}
	switch {
	case len(c.Settings) > 0 && string(c.Settings) != "{}":
		return wrong("settings: a broker of type nats has none")
	case (c.TLS.Cert == "") != (c.TLS.Key == ""):
		return wrong("tls: cert and key belong together")
	case c.URL != "" && c.Listen != "":
		return wrong("listen: it is of the embedded server; leave out listen or url")
	case c.URL == "" && (c.User != "" || c.Password != "" || c.TLS.CA != ""):
		return wrong("user, password and ca are of an external server; without a url the server is embedded")
	case c.URL == "" && c.Listen == "" && c.TLS.Cert != "":
		return wrong("tls: the embedded server opens no port without listen")
	case c.Listen != "" && c.TLS.Cert == "" && !isLoopback(c.Listen):
		return wrong("listen: %s can be reached from other machines, and passwords would be sent as plain text; set tls with cert and key", c.Listen)
	}
	for _, text := range strings.Split(c.URL, ",") {
		if u, err := url.Parse(text); c.URL != "" && (err != nil || u.Host == "" || u.User != nil || u.Scheme != "nats" && u.Scheme != "tls") {
			return wrong("url: write nats://HOST:PORT or tls://HOST:PORT, with commas between the servers of a cluster, and user and password in fields of their own")
		}
	}
	return nil
}

// isLoopback reports whether an address HOST:PORT is reached from this machine alone.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
