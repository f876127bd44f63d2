package chrome

import (
	"fmt"
	"os"
)

// flags gives the browser's command line.
func flags(folder string, s Settings) []string {
	list := []string{
		"--headless=new", "--remote-debugging-pipe", "--user-data-dir=" + folder + "/profile",
		fmt.Sprintf("--window-size=%d,%d", s.Viewport.Width, s.Viewport.Height),

		// What is no browser context of ours reaches nothing: the proxy of
		// the default one is a port nobody serves, and no name is ever
		// resolved in the browser.
		"--proxy-server=http://127.0.0.1:1", "--proxy-bypass-list=<-loopback>",
		"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
		"--dns-prefetch-disable", "--no-pings", "--disable-quic",
		"--force-webrtc-ip-handling-policy=disable_non_proxied_udp", "--webrtc-ip-handling-policy=disable_non_proxied_udp",

		// With the network inside the browser's process, both end together.
		"--enable-features=NetworkServiceInProcess2,NetworkServiceInProcess",
		"--disable-features=BackForwardCache,Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,Prerender2,WebRtcHideLocalIpsWithMdns,AutofillServerCommunication,InterestFeedContentSuggestions,CertificateTransparencyComponentUpdater,HttpsUpgrades,WebOTP,WebBluetooth,WebUSB,DirectSockets",

		// Nothing of its own goes on.
		"--disable-background-networking", "--disable-breakpad", "--disable-crash-reporter", "--disable-client-side-phishing-detection",
		"--disable-component-extensions-with-background-pages", "--disable-component-update", "--disable-default-apps", "--disable-domain-reliability",
		"--disable-extensions", "--disable-sync", "--disable-field-trial-config", "--no-first-run", "--no-default-browser-check", "--no-service-autorun",
		"--metrics-recording-only", "--safebrowsing-disable-auto-update", "--password-store=basic", "--use-mock-keychain",

		// It runs where there is no screen, no sound and little shared memory.
		"--disable-gpu", "--disable-dev-shm-usage", "--mute-audio", "--hide-scrollbars", "--force-color-profile=srgb",
		"--disable-backgrounding-occluded-windows", "--disable-renderer-backgrounding", "--disable-background-timer-throttling",
		"--disable-file-system", "--deny-permission-prompts",
	}
	if s.NoSandbox || os.Getuid() == 0 { // Chromium does not start as root with it
		list = append(list, "--no-sandbox")
	}
	return append(list, "about:blank")
}
