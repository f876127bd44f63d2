package protocol

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"strings"
	"sync"
)

// Signer signs and verifies with the keys of one service. It prepares the keys once. It is
// immutable and safe for concurrent use.
type Signer struct{ keys []*signingKey }

// NewSigner returns a Signer. An empty key signs as every other one, and verifies nothing.
func NewSigner(keys ...string) *Signer {
	s := &Signer{keys: make([]*signingKey, len(keys))}
	for i, key := range keys {
		s.keys[i] = &signingKey{empty: key == "", macs: sync.Pool{New: func() any { return &keyedMAC{mac: hmac.New(sha256.New, []byte(key))} }}}
	}
	return s
}

// signingKey is one key.
type signingKey struct {
	empty bool
	macs  sync.Pool // of *keyedMAC
}

// keyedMAC is an HMAC with a key. One that was used starts faster than a new one.
type keyedMAC struct {
	mac  hash.Hash
	text []byte // what is signed
}

// appendSignature appends the signature of a text, in unpadded base64url.
func (k *signingKey) appendSignature(to []byte, context, text string) []byte {
	m := k.macs.Get().(*keyedMAC)
	defer k.macs.Put(m)
	m.text = append(append(m.text[:0], context...), text...)
	m.mac.Reset()
	m.mac.Write(m.text)
	m.text = m.mac.Sum(m.text[:0])
	return base64.RawURLEncoding.AppendEncode(to, m.text)
}

// sign returns a text with its signatures, with dots between.
func (s *Signer) sign(context, text string) string {
	signed := make([]byte, 0, len(text)+len(s.keys)*(1+signatureSize))
	signed = append(signed, text...)
	for _, key := range s.keys {
		signed = key.appendSignature(append(signed, '.'), context, text)
	}
	return string(signed)
}

// hasSigned reports whether one of the keys has made one of the signatures. Dots separate the
// signatures. An empty key signs nothing.
func (s *Signer) hasSigned(context, text, signatures string) bool {
	for _, key := range s.keys {
		if key.empty {
			continue
		}
		want := key.appendSignature(make([]byte, 0, signatureSize), context, text)
		for signed := range strings.SplitSeq(signatures, ".") {
			if hmac.Equal([]byte(signed), want) {
				return true
			}
		}
	}
	return false
}

// signatureSize is the number of characters of a signature.
const signatureSize = 43
