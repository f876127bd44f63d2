package rabbitmq

import (
	"net/url"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolservice/broker"
)

// check reports what is wrong with a configuration; it is the Check of Kind.
func check(c broker.Config) error {
	wrong := func(text string) error {
		return errcode.New(errcode.InvalidConfig, "broker %s: %s", c.Name, text)
	}
	switch {
	case len(c.Settings) > 0 && string(c.Settings) != "{}":
		return wrong("settings: a broker of type rabbitmq has none")
	case c.Listen != "":
		return wrong("listen: a broker of type rabbitmq is never embedded")
	case !isURL(c.URL):
		return wrong("url: write amqp://HOST:PORT/VHOST or amqps://HOST:PORT/VHOST, with user and password in fields of their own")
	case c.User == "" || c.Password == "":
		return wrong("user and password are required; RabbitMQ rejects clients without them")
	case (c.TLS.Cert == "") != (c.TLS.Key == ""):
		return wrong("tls: cert and key belong together")
	case c.TLS != broker.TLSFiles{} && c.URL[:len("amqps")] != "amqps":
		return wrong("tls: it needs a url that begins with amqps://")
	}
	return nil
}

// isURL reports whether a text is the URL of a broker and of nothing else.
func isURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "amqp" || u.Scheme == "amqps") && u.Hostname() != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}
