package config

import (
	"encoding/base64"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/rolecall/rolecall/internal/yamldoc"
)

// Notification is a document of kind notification: a receiver of messages about calls that wait
// for people.
//
//	kind: notification
//	name: oncall
//	url: https://ops.example.com/rolecall
//	secret: ${ONCALL_SECRET}
//	page: https://rolecall.example.com
type Notification struct {
	Name     string
	URL      yamldoc.Secret // the path of the address of a chat is a secret
	Secret   yamldoc.Secret // whsec_ and the key in base64; "" for NotifySlack
	Format   string         // one of the formats
	Events   []string       // types of events, of notifyEvents
	Page     string         // address of the web page; "" for no link
	RetryFor time.Duration  // how long a message is tried again

	AllowHTTP        bool           // http in addition to https
	PrivateAddresses []netip.Prefix // allowed ranges that are not public
	Pos              yamldoc.Pos
}

// The formats of messages.
const (
	NotifyJSON  = "json"
	NotifySlack = "slack"
)

// notifyEvents are the events that a notification may be about.
var notifyEvents = []string{"approval_requested", "approval_escalated", "approval_decided"}

// Limits of a notification's document, and what applies without the field.
const (
	maxNotifications = 20
	maxRetryFor      = 72 * time.Hour
	defaultRetryFor  = time.Hour
	minSigningKey    = 24 // bytes, as Standard Webhooks asks for
	maxSigningKey    = 64
	secretPrefix     = "whsec_"
)

// readNotification reads a document of kind notification.
func readNotification(it item) {
	n := Notification{Name: it.Name, Pos: it.Pos, Format: NotifyJSON, RetryFor: defaultRetryFor}
	it.DeclareItem()
	it.checkPlainName("it is a label of metrics")
	if len(it.r.config.Notifications) == maxNotifications {
		it.AddError(fmt.Sprintf("is one notification too many; at most %d are allowed", maxNotifications), "")
	}
	before, address := it.ErrorCount(), ""
	it.ReadFields(yamldoc.Fields{
		"url":              yamldoc.FileAllowed(yamldoc.ServerURL(&address)),
		"secret":           signingKeyField(&n.Secret),
		"format":           yamldoc.OneOfField(&n.Format, NotifyJSON, NotifySlack),
		"events":           yamldoc.NameSet(&n.Events, "events", checkNotifyEvent),
		"page":             yamldoc.ServerURL(&n.Page),
		"retryFor":         yamldoc.DurationField(&n.RetryFor, maxRetryFor),
		"allowHTTP":        yamldoc.BoolField(&n.AllowHTTP),
		"privateAddresses": yamldoc.AddressRangeList(&n.PrivateAddresses),
	})
	it.RequireFields("url")
	if n.URL = yamldoc.Secret(address); it.ErrorCount() == before {
		it.checkReceiver(n)
	}
	if len(n.Events) == 0 {
		n.Events = notifyEvents
	}
	it.r.config.Notifications = append(it.r.config.Notifications, n)
}

// checkNotifyEvent checks the type of an event.
func checkNotifyEvent(name string) (message, hint string) {
	for _, known := range notifyEvents {
		if name == known {
			return "", ""
		}
	}
	return "is not an event of approvals", "use some of " + strings.Join(notifyEvents, ", ")
}

// checkReceiver rejects an address without encryption, a message that nobody could verify, and an
// address of a chat that stands in the document.
func (it item) checkReceiver(n Notification) {
	at := it.present("url")
	if u, err := url.Parse(string(n.URL)); err == nil && u.Scheme != "https" && !n.AllowHTTP {
		at.AddRedactedError("is not https: the arguments of calls would be sent in clear", "use https, or set allowHTTP: true")
	}
	_, hasSecret := it.FindField("secret")
	switch {
	case n.Format == NotifyJSON && !hasSecret:
		it.MissingField("secret").AddRedactedError("is missing", "the receiver verifies messages with it; make one: echo whsec_$(openssl rand -base64 32)")
	case n.Format == NotifySlack && hasSecret:
		it.present("secret").AddRedactedError("is not used in the format slack", "leave it out")
	case n.Format == NotifySlack && !strings.HasPrefix(at.Node.Value, "${"):
		at.AddRedactedError("must be a variable or a file: whoever knows the address of a chat can write to it", "write ${file:/run/secrets/slack}, for example")
	}
}

// signingKeyField reads the key with which messages are signed.
func signingKeyField(to *yamldoc.Secret) func(yamldoc.Value) {
	return yamldoc.FileAllowed(func(v yamldoc.Value) {
		before := v.ErrorCount()
		yamldoc.RequiredSecret(to)(v)
		if v.ErrorCount() > before {
			return
		}
		if key, ok := SigningKey(*to); !ok || len(key) < minSigningKey || len(key) > maxSigningKey {
			v.AddRedactedError("is not whsec_ and 24 to 64 bytes in base64", "make one: echo whsec_$(openssl rand -base64 32)")
		}
	})
}

// SigningKey returns the key of a secret, which is written as Standard Webhooks asks for. It
// reports false for other texts.
func SigningKey(secret yamldoc.Secret) ([]byte, bool) {
	text, prefixed := strings.CutPrefix(string(secret), secretPrefix)
	key, err := base64.StdEncoding.DecodeString(text)
	return key, prefixed && err == nil
}
