package config

import (
	"fmt"
	"net"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/rolecall/rolecall/org/hosts"
)

// Gateway is the one document about who may come in from outside, and where.
type Gateway struct {
	Name    string
	Address string            // host:port; "" is the program's own
	Origins []hosts.Origin    // whose pages may ask, beside the gateway's own, as https://app.example.com
	Hosts   []hosts.Authority // what it is called beside its address, as gw.example.com or gw.example.com:8080
	Tokens  []Token
	Pos     Pos
}

func readGateway(it docItem) {
	gateway := Gateway{Name: it.name, Pos: it.pos}
	it.fields(
		field{"address", listenAddress(&gateway.Address)},
		field{"origins", parsedList(&gateway.Origins, "origin", "as [https://app.example.com]", hosts.ParseOrigin)},
		field{"hosts", parsedList(&gateway.Hosts, "host name", "as [gw.example.com]", hosts.ParseAuthority)},
		field{"tokens", tokenList(&gateway.Tokens)},
		unavailable("auth"), unavailable("tls"), unavailable("cors"),
	)
	to := &it.doc.config.Gateway
	if to.Pos != (Pos{}) {
		it.fail(fmt.Sprintf("a second gateway; the first is at %s", to.Pos), "a configuration has one")
		return
	}
	*to = gateway
}

// listenAddress reads host:port.
func listenAddress(to *string) func(value) {
	return func(v value) {
		text, ok := v.nonEmpty()
		if !ok {
			return
		}
		host, port, err := net.SplitHostPort(text)
		if err != nil || port == "" || strings.Trim(port, "0123456789") != "" || len(port) > 5 || strings.ContainsAny(host, " /@") {
			v.failType("an address as HOST:PORT", "as 127.0.0.1:7464")
			return
		}
		*to = text
	}
}

// parsedList reads a list of texts, each of which has to be a what.
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
				item.fail(quote(item.node.Value)+" is no "+what, hint)
				continue
			}
			*to = append(*to, one)
		}
	}
}
