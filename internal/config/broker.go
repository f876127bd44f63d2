package config

import (
	"encoding/json"
	"net"

	"github.com/rolecall/rolecall/internal/yamldoc"
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
	Pos      yamldoc.Pos
}

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
