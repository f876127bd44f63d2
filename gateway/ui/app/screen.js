// What a screen of the page is. The page loads its data, folds events into it, and draws the
// states that all screens have: loading, empty, error, not live and not allowed.

/** @typedef {import("./place.js").Place} Place */
/** @typedef {import("./stream.js").OrgEvent} OrgEvent */

/**
 * @typedef {object} Page what a screen may use of the page
 * @property {number} now milliseconds since 1970
 * @property {() => void} redraw draws again with the next frame
 * @property {() => void} reload loads the data again
 * @property {(f: () => void) => void} afterDraw calls f once after the next drawing
 * @property {any} session who is signed in
 */

/**
 * @typedef {object} Screen
 * @property {string} id in the address
 * @property {string} title
 * @property {(data: any, place: Place) => string | undefined} [heading] the heading, if it is not the title
 * @property {string} [key] after g, to go there
 * @property {"operator" | "caller"} scope who sees it: the operator alone, or callers in a role, too
 * @property {boolean} [hidden] it is not in the navigation
 * @property {(place: Place) => string} loadKey the data is loaded again when this changes
 * @property {(place: Place, signal: AbortSignal, page: Page) => Promise<any>} load
 * @property {(data: any, place: Place) => Promise<void>} [refresh] loads again only what fold cannot learn from events, in place of load
 * @property {(data: any, e: OrgEvent, place: Place) => boolean | "reload"} [fold] applies an event, and reports whether the data changed or must be loaded again
 * @property {(data: any) => string} [watch] the task in which models write what is shown, "" for none
 * @property {(data: any, parts: import("./writing.js").Part[], begin: boolean) => void} [write] applies parts of what they write; begin voids the parts before
 * @property {(data: any, place: Place) => boolean} [isEmpty]
 * @property {(place: Place, page: Page) => {text: string, command?: string}} [empty] what would be here, and the command that makes one
 * @property {(data: any, place: Place, page: Page) => any} [tools] controls beside the title
 * @property {(data: any, place: Place, page: Page) => any} render
 * @property {(e: KeyboardEvent, data: any, place: Place, page: Page) => boolean} [keydown] reports whether the key was used
 */
export {};
