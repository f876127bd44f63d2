package config

import (
	"fmt"
	"net"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/rolecall/rolecall/org/hosts"
)

// Gateway is the document of kind gateway: the address of the server, the hosts
// and origins it accepts, and its tokens. A configuration has at most one.
//
//	kind: gateway
//	name: api
//	address: 127.0.0.1:7464
//	origins: [https://app.example.com]
//	tokens:
//	  - {name: ann, role: reader, sha256: bb76d489e0ee334ed05d12cc413fa6935e3866c1b9c2468ae6841226ef9a47be}
type Gateway struct {
	Name    string
	Address string            // host:port; "" is the default
	Origins []hosts.Origin    // accepted origins of pages, in addition to the gateway's own, such as https://app.example.com
	Hosts   []hosts.Authority // accepted Host headers, in addition to the address, such as gw.example.com or gw.example.com:8080
	Tokens  []Token
	Pos     Pos
}

// readGateway reads the document of kind gateway.
func readGateway(it docItem) {
	gateway := Gateway{Name: it.name, Pos: it.pos}
	it.fields(
		field{"address", listenAddress(&gateway.Address)},
		field{"origins", parsedList(&gateway.Origins, "origin", "for example [https://app.example.com]", hosts.ParseOrigin)},
		field{"hosts", parsedList(&gateway.Hosts, "host name", "for example [gw.example.com]", hosts.ParseAuthority)},
		field{"tokens", tokenList(&gateway.Tokens)},
		unavailable("auth"), unavailable("tls"), unavailable("cors"),
	)
	to := &it.doc.config.Gateway
	if to.Pos != (Pos{}) {
		it.fail(fmt.Sprintf("duplicate gateway; the first is at %s", to.Pos), "a configuration has at most one")
		return
	}
	*to = gateway
}

// listenAddress reads HOST:PORT with a numeric port. The host may be empty.
func listenAddress(to *string) func(value) {
	return func(v value) {
		text, ok := v.nonEmpty()
		if !ok {
			return
		}
		host, port, err := net.SplitHostPort(text)
		if err != nil || port == "" || strings.Trim(port, "0123456789") != "" || len(port) > 5 || strings.ContainsAny(host, " /@") {
			v.failType("an address as HOST:PORT", "for example 127.0.0.1:7464")
			return
		}
		*to = text
	}
}

// parsedList reads a list of texts, each of which parse must accept. Errors call
// an entry what.
func parsedList[T any](to *[]T, what, hint string, parse func(string) (T, bool)) func(value) {
	return func(v value) {
		if v.node.Kind != yaml.SequenceNode || !hasTag(v, "!!seq") {
			v.failType("a list of "+what+"s", hint)
			return
		}
		for _, item := range v.items() {
			text, ok := item.nonEmpty()
			if !ok {
				continue
			}
			one, ok := parse(text)
			if !ok {
				item.fail(quote(item.node.Value)+" is not a valid "+what, hint)
				continue
			}
			*to = append(*to, one)
		}
	}
}
