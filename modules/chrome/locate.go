package chrome

// locateScript finds an element, scrolls to it and prepares it for the action. Its argument is
// an element, its result an elementState.
const locateScript = `({selector, text, index, act, value, clear}) => {
	const words = e => ((e.innerText ?? e.textContent ?? '') || e.value || e.getAttribute('aria-label') || e.placeholder || e.title || '').toString().replace(/\s+/g, ' ').trim();
	const name = e => e && ('<' + e.localName + (e.id ? ' id=' + e.id.slice(0, 40) : '') + '> ' + words(e).slice(0, 60)).trim();
	const seen = e => e.getClientRects().length > 0 && getComputedStyle(e).visibility === 'visible';
	let all;
	if (act === 'type' && !selector) {
		all = document.activeElement && document.activeElement !== document.body ? [document.activeElement] : [];
	} else {
		try { all = [...document.querySelectorAll(selector || 'body *')]; } catch { return {invalid: 'selector'}; }
		all = all.slice(0, 50000).filter(seen);
	}
	if (text) {
		const want = text.replace(/\s+/g, ' ').trim();
		let fit = all.filter(e => words(e) === want);
		if (!fit.length) fit = all.filter(e => words(e).includes(want));
		all = fit.filter(e => !fit.some(o => o !== e && e.contains(o)));
	}
	const e = all[index || 0], out = {count: all.length, what: name(e) || ''};
	if (!e) return out;
	e.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});
	const box = e.getBoundingClientRect();
	if (act === 'shoot') return {...out, x: box.x + scrollX, y: box.y + scrollY, width: box.width, height: box.height};
	if (e.disabled) return {...out, wrong: 'is disabled'};
	if (act === 'click') {
		const part = e.getClientRects()[0];
		const x = Math.min(Math.max(part.x + part.width / 2, 0), innerWidth - 1), y = Math.min(Math.max(part.y + part.height / 2, 0), innerHeight - 1);
		let hit = document.elementFromPoint(x, y);
		while (hit?.shadowRoot?.elementFromPoint(x, y) && hit.shadowRoot.elementFromPoint(x, y) !== hit) hit = hit.shadowRoot.elementFromPoint(x, y);
		const same = hit && (e.contains(hit) || hit.contains(e) || e.shadowRoot?.contains(hit) || [...(e.labels ?? [])].some(l => l.contains(hit)));
		return same ? {...out, x, y} : {...out, covered: name(hit) || 'something'};
	}
	if (e.localName === 'select') {
		const option = [...e.options].find(o => o.value === value || o.text.trim() === value);
		if (!option) return {...out, wrong: 'has no option of this value or text'};
		option.selected = true;
		e.dispatchEvent(new Event('input', {bubbles: true}));
		e.dispatchEvent(new Event('change', {bubbles: true}));
		return {...out, done: true};
	}
	if (e.readOnly) return {...out, wrong: 'is read only'};
	if (e.type === 'file') return {...out, wrong: 'is a file input, which is not supported'};
	e.focus();
	if (clear && e.select) e.select();
	else if (clear) getSelection().selectAllChildren(e);
	return out;
}`
