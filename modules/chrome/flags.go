package chrome

import "fmt"

// flags returns the arguments of the browser. chromiumSandbox enables Chromium's own sandbox.
func flags(dir string, s Settings, chromiumSandbox bool) []string {
	list := []string{
		"--headless=new", "--remote-debugging-pipe", "--user-data-dir=" + dir + "/profile",
		fmt.Sprintf("--window-size=%d,%d", s.Viewport.Width, s.Viewport.Height),

		// The default browser context, which is not used, reaches nothing: its proxy is
		// a closed port. The browser resolves no names itself.
		"--proxy-server=http://127.0.0.1:1", "--proxy-bypass-list=<-loopback>",
		"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
		"--dns-prefetch-disable", "--no-pings", "--disable-quic",
		"--force-webrtc-ip-handling-policy=disable_non_proxied_udp", "--webrtc-ip-handling-policy=disable_non_proxied_udp",

		// With the network service in the browser process, both end together.
		"--enable-features=NetworkServiceInProcess2,NetworkServiceInProcess",
		"--disable-features=BackForwardCache,Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,Prerender2,WebRtcHideLocalIpsWithMdns,AutofillServerCommunication,InterestFeedContentSuggestions,CertificateTransparencyComponentUpdater,HttpsUpgrades,WebOTP,WebBluetooth,WebUSB,DirectSockets",

		// The browser sends no requests of its own.
		"--disable-background-networking", "--disable-breakpad", "--disable-crash-reporter", "--disable-client-side-phishing-detection",
		"--disable-component-extensions-with-background-pages", "--disable-component-update", "--disable-default-apps", "--disable-domain-reliability",
		"--disable-extensions", "--disable-sync", "--disable-field-trial-config", "--no-first-run", "--no-default-browser-check", "--no-service-autorun",
		"--metrics-recording-only", "--safebrowsing-disable-auto-update", "--password-store=basic", "--use-mock-keychain",

		// There may be no screen, no sound and little shared memory.
		"--disable-gpu", "--disable-dev-shm-usage", "--mute-audio", "--hide-scrollbars", "--force-color-profile=srgb",
		"--disable-backgrounding-occluded-windows", "--disable-renderer-backgrounding", "--disable-background-timer-throttling",
		"--disable-file-system", "--deny-permission-prompts",
	}
	if !chromiumSandbox {
		list = append(list, "--no-sandbox")
	}
	return append(list, "about:blank")
}
