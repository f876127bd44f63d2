package keystore

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/json"
	"slices"

	"github.com/rolecall/rolecall/errcode"
)

// Seal keys encrypt what the organization stores, for the purpose whose name they have. Without
// the file of the keys, such as in a backup, what they encrypt cannot be read.
const Seal Use = "seal"

// sealKeyID is the length of the id of a key, which begins a sealed text.
const sealKeyID = 8

// SealText encrypts a text with the newest key of a purpose, which it creates if there is none. Only
// OpenText with the same purpose and the same context opens it, in this organization.
func (s *Store) SealText(purpose string, plain []byte, context ...string) ([]byte, error) {
	k, err := s.sealKey(purpose)
	if err != nil {
		return nil, err
	}
	aead, data, err := s.sealer(k, context)
	if err != nil {
		return nil, err
	}
	return append([]byte(k.ID), aead.Seal(nil, nil, plain, data)...), nil
}

// OpenText decrypts a text of SealText. Errors: Conflict if its key is lost, the text was changed,
// or it was sealed for another purpose, context or organization.
func (s *Store) OpenText(purpose string, sealed []byte, context ...string) ([]byte, error) {
	keys, err := s.ValidKeys(Seal, purpose)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(keys, func(k Key) bool { return len(sealed) > sealKeyID && k.ID == string(sealed[:sealKeyID]) })
	if at < 0 {
		return nil, errcode.New(errcode.Conflict, "open a sealed text of %q: its key is not in %s", purpose, FileName)
	}
	aead, data, err := s.sealer(keys[at], context)
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, nil, sealed[sealKeyID:], data)
	if err != nil {
		return nil, errcode.New(errcode.Conflict, "open a sealed text of %q: it was changed, or sealed for something else", purpose)
	}
	return plain, nil
}

// sealKey returns the newest key of a purpose, or a new one.
func (s *Store) sealKey(purpose string) (Key, error) {
	for {
		k, found, err := s.NewestKey(Seal, purpose)
		if err != nil || found {
			return k, err
		}
		if k, err = s.CreateKey(Seal, purpose); errcode.CodeOf(err) != errcode.Conflict {
			return k, err
		}
		if _, found, _ := s.NewestKey(Seal, purpose); !found { // another process has the lock
			return Key{}, err
		}
	}
}

// sealer returns the cipher of a key, and the associated data of a context.
func (s *Store) sealer(k Key, context []string) (cipher.AEAD, []byte, error) {
	organization, err := s.Organization()
	if err != nil {
		return nil, nil, err
	}
	key, err := hkdf.Key(sha256.New, []byte(k.Secret), nil, "rolecall seal "+k.Name, 32)
	if err != nil {
		return nil, nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, nil, err
	}
	data, err := json.Marshal(append([]string{organization, k.Name}, context...))
	if err != nil {
		return nil, nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return aead, data, err
}
