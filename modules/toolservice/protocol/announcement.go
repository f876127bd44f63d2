package protocol

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// Announcement is what a service says about itself. It is valid for Lease. The service
// announces itself again before the lease ends.
type Announcement struct {
	Service  string          `json:"id"`             // id of the service
	Request  string          `json:"request-queue"`  // non-persistent://tg/request/ID
	Response string          `json:"response-queue"` // non-persistent://tg/response/ID
	Tools    []AnnouncedTool `json:"tools"`
	Instance string          `json:"instance"`      // of the process; another value for each start
	Started  time.Time       `json:"started"`       // when the process started
	Time     time.Time       `json:"time"`          // when this was written; later in each announcement of an instance
	Lease    int             `json:"lease_seconds"` // MinLease to MaxLease; not used with End
	End      bool            `json:"end,omitzero"`  // the instance stops; Tools are not used
}

// AnnouncedTool is a tool of an announcement.
type AnnouncedTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Input       json.RawMessage `json:"arguments,omitempty"` // the JSON Schema of an object; absent means no arguments
	Effect      string          `json:"effect,omitzero"`     // readOnly, idempotent or mutating. A hint for people
}

// Limits of announcements.
const (
	MinLease             = 10 * time.Second
	MaxLease             = 10 * time.Minute
	MaxAnnouncementBytes = 384 << 10 // of the signed text
	MaxAnnouncedTools    = 500
	maxAnnouncedID       = 64
	maxClockSkew         = time.Minute
	maxInstance          = 64
)

// announceSpace is the first part of the subjects of announcements.
const announceSpace = "rolecall.announce."

// AnnounceSubject returns the subject on which a service announces itself.
func AnnounceSubject(service string) string { return announceSpace + service }

// AllAnnouncements is the subject, with the wildcard of NATS, of all announcements.
const AllAnnouncements = announceSpace + ">"

// AnnouncedService returns the id in the subject of an announcement. It reports false for
// another subject.
func AnnouncedService(subject string) (service string, ok bool) {
	return strings.CutPrefix(subject, announceSpace)
}

// AnnouncedQueues returns the queues that a service with this id announces. It reports false
// if a service with this id cannot announce itself.
func AnnouncedQueues(service string) (request, response Topic, ok bool) {
	request = Topic{Class: "request", Space: "tg", Name: service}
	response = Topic{Class: "response", Space: "tg", Name: service}
	return request, response, len(service) <= maxAnnouncedID && isSubject(service)
}

// Sign returns the signed text of a. It has the JSON of a and an HMAC-SHA-256 of the JSON, in
// unpadded base64url with a dot between, as for a Token.
func (a Announcement) Sign(key string) string {
	body, _ := json.Marshal(a) // a schema that is no JSON leaves an empty body, which is rejected
	return NewSigner(key).sign(contextAnnouncement, base64.RawURLEncoding.EncodeToString(body))
}

// Errors of VerifyAnnouncement.
var (
	ErrAnnouncementInvalid = errors.New("the announcement is not signed with the key of the service")
	ErrAnnouncementOther   = errors.New("the announcement is of another service")
	ErrAnnouncementExpired = errors.New("the announcement is too old, or from the future; compare the clocks")
	ErrAnnouncementFields  = errors.New("the announcement has a wrong queue, lease or instance")
	ErrAnnouncementTools   = errors.New("the announcement has too many tools")
	ErrAnnouncementLarge   = errors.New("the announcement is too large")
)

// VerifyAnnouncement returns the announcement of a service. keys are the valid keys of the
// service; without any, no announcement is valid. It returns one of the errors above. It
// does not check the tools themselves.
func VerifyAnnouncement(text, service string, now time.Time, keys ...string) (Announcement, error) {
	if len(text) > MaxAnnouncementBytes {
		return Announcement{}, ErrAnnouncementLarge
	}
	body, signatures, _ := strings.Cut(text, ".")
	if !NewSigner(keys...).hasSigned(contextAnnouncement, body, signatures) {
		return Announcement{}, ErrAnnouncementInvalid
	}
	var a Announcement
	data, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil || json.Unmarshal(data, &a) != nil {
		return Announcement{}, ErrAnnouncementInvalid
	}
	return a, a.check(service, now)
}

// check returns what is wrong with a signed announcement.
func (a Announcement) check(service string, now time.Time) error {
	request, response, ok := AnnouncedQueues(service)
	wrong := func(queue string, want Topic) bool {
		t, err := ParseTopic(queue)
		return err != nil || t != want
	}
	lease := a.LeaseTime()
	switch {
	case a.Service != service || !ok:
		return ErrAnnouncementOther
	case wrong(a.Request, request) || wrong(a.Response, response) || a.Instance == "" || len(a.Instance) > maxInstance:
		return ErrAnnouncementFields
	case !a.End && (lease < MinLease || lease > MaxLease):
		return ErrAnnouncementFields
	case len(a.Tools) > MaxAnnouncedTools:
		return ErrAnnouncementTools
	case now.Sub(a.Time) > max(lease, MinLease) || a.Time.Sub(now) > maxClockSkew || a.Started.After(a.Time):
		return ErrAnnouncementExpired
	}
	return nil
}

// LeaseTime returns how long a is valid after it was received.
func (a Announcement) LeaseTime() time.Duration {
	return time.Duration(min(max(a.Lease, 0), int(MaxLease/time.Second)+1)) * time.Second
}
