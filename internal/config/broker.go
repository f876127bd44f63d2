package config

import (
	"encoding/json"
	"fmt"
	"net"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
	"github.com/rolecall/rolecall/tool"
)

// Broker is a document of kind broker: where tool services are reached.
//
//	kind: broker
//	name: main
//	type: nats
//	listen: 127.0.0.1:4222
type Broker struct {
	Name string
	Type string // the caller checks that the program has this type

	URL      string // of an external broker; "" is the embedded one, if the type has one
	User     string
	Password yamldoc.Secret
	Listen   string // address of the embedded broker, HOST:PORT; "" opens no port
	TLS      BrokerTLS
	Settings json.RawMessage // a JSON object of what only this type has; nil if there are none
	Announce Announce        `json:",omitzero"` // which services may announce themselves; the zero value allows no service
	Pos      yamldoc.Pos
}

// Announce says which services may announce themselves at a broker.
type Announce struct {
	Quarantine bool     // every service that has a key; the operator accepts its tools
	Allow      []string // these services; the tools of their first announcement are accepted
}

// IsOff reports whether no service may announce itself.
func (a Announce) IsOff() bool { return !a.Quarantine && len(a.Allow) == 0 }

// BrokerTLS are the paths of PEM files; "" is not set.
type BrokerTLS struct{ CA, Cert, Key string }

// readBroker reads a document of kind broker. It does not check what only the type knows.
func readBroker(it item) {
	it.DeclareItem()
	b := Broker{Name: it.Name, Pos: it.Pos}
	it.ReadFields(yamldoc.Fields{
		"type":     yamldoc.NonEmptyField(&b.Type),
		"url":      yamldoc.FileAllowed(yamldoc.NonEmptyField(&b.URL)),
		"user":     yamldoc.FileAllowed(yamldoc.NonEmptyField(&b.User)),
		"password": yamldoc.PasswordField(&b.Password),
		"listen":   listenField(&b.Listen),
		"tls": yamldoc.MappingField(yamldoc.Fields{
			"ca": pathField(&b.TLS.CA), "cert": pathField(&b.TLS.Cert), "key": pathField(&b.TLS.Key),
		}),
		"settings": func(v yamldoc.Value) { b.Settings = v.ReadSettings() },
		"announce": announceField(&b.Announce),
	})
	it.RequireFields("type")
	it.r.config.Brokers = append(it.r.config.Brokers, b)
}

// listenField reads an address HOST:PORT.
func listenField(to *string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		text, ok := v.ReadNonEmpty()
		if !ok {
			return
		}
		if _, port, err := net.SplitHostPort(text); err != nil || port == "" {
			v.AddError(yamldoc.QuoteText(text)+" is not an address", "write HOST:PORT, for example 127.0.0.1:4222")
			return
		}
		*to = text
	}
}

// maxAnnounceAllowed is the largest number of services that a broker allows to announce themselves.
const maxAnnounceAllowed = 128

// announceField reads off, quarantine, or {allow: [ids]}.
func announceField(to *Announce) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		if v.IsMapping() {
			v.ReadFields(yamldoc.Fields{"allow": allowField(&to.Allow)})
			return
		}
		var word string
		yamldoc.OneOfField(&word, "off", "quarantine")(v)
		to.Quarantine = word == "quarantine"
	}
}

// allowField reads ids of services.
func allowField(to *[]string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		if !v.IsList() || len(v.Node.Content) > maxAnnounceAllowed {
			v.AddTypeError(fmt.Sprintf("a list of at most %d services", maxAnnounceAllowed), "for example [joke-service]")
			return
		}
		for _, entry := range v.ListItems() {
			id, ok := entry.ReadNonEmpty()
			if !ok {
				continue
			}
			if _, _, valid := protocol.AnnouncedQueues(id); !valid || tool.CheckName(id) != nil {
				entry.AddError(yamldoc.QuoteText(id)+" is not the id of a service that can announce itself", "use at most 64 letters, digits, '_', '-' and single dots")
				continue
			}
			*to = append(*to, id)
		}
	}
}
