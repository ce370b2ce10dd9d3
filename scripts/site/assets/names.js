/* Names of the API beside its pages and first among what a search finds. api_names.js, which is read when it is needed,
   has `names`, those of each module, with their pages where these are another module's, and `members`, those of classes. */
(() => {
  const base = new URL(JSON.parse(document.getElementById("__config").textContent).base + "/", location), api = new URL("api/", base);
  const COMMON = ["fluid", "fluid.layers", "fluid.io", "fluid.dygraph", "fluid.optimizer", "fluid.initializer", "paddle", "paddle.io", "paddle.nn"];
  const MOST = 4;

  const make = (parent, tag, style, text) => {
    const made = document.createElement(tag);
    if (style) made.className = style;
    if (text) made.textContent = text;
    parent.append(made);
    return made;
  };

  let table;
  const read = () => table ??= new Promise(done => {
    const script = document.createElement("script");
    script.src = new URL("assets/api_names.js", base);
    script.addEventListener("load", () => done(apiNames));
    document.head.append(script);
  });

  async function beside(list, [module, name]) {
    const { names } = await read(), shown = document.createElement("ul");
    shown.className = "md-nav__list api-names";
    const link = (text, page, style = "") => {
      const a = make(make(shown, "li", "md-nav__item"), "a", `md-nav__link ${style}`, text.replace(/[._]/g, "$&\u200b")); /* breaks there */
      a.href = new URL(page + ".html", api);
    };
    const active = one => one === name ? "md-nav__link--active" : "";
    if (name === undefined) for (const one of Object.keys(names)) link(one, one + "/index");
    else {
      link("All modules", "index");
      link(module, module + "/index", "api-module " + active("index"));
      for (const one of names[module] || []) {
        const [text, page] = typeof one === "string" ? [one, `${module}/${one}`] : one;
        link(text, page, active(text));
      }
    }
    list.before(shown);
    const current = shown.querySelector(".md-nav__link--active"), scrolled = list.closest(".md-sidebar__scrollwrap");
    if (current && scrolled) scrolled.scrollTop = current.offsetTop - scrolled.clientHeight / 2;
  }

  /* [full name, page, whether this is its own page] of everything. */
  let every;
  async function all() {
    if (every) return every;
    const { names, members } = await read();
    every = [];
    for (const [module, found] of Object.entries(names))
      for (const one of found)
        every.push(typeof one === "string" ? [`${module}.${one}`, `${module}/${one}.html`, true] : [`${module}.${one[0]}`, `${one[1]}.html`, false]);
    for (const [page, found] of Object.entries(members))
      for (const one of found) every.push([`${page.replace("/", ".")}.${one}`, `${page}.html#${one.toLowerCase()}`, true]);
    return every;
  }

  async function find(text) {
    const query = text.trim().toLowerCase().replace(/^paddle\.fluid\b/, "fluid").replace(/\(.*$/, "");
    if (query.length < 2) return [];
    const found = [];
    for (const [name, page, own] of await all()) {
      const low = name.toLowerCase(), same = low === query ? 0 : low.endsWith("." + query) ? 1 : 9;
      const near = own && !query.includes(".") && low.slice(low.lastIndexOf(".") + 1).startsWith(query) ? 2 : 9;
      const core = name.startsWith("fluid.core.") && low !== query;
      if (Math.min(same, near) < 9 && (own || same === 0) && !core) {
        const common = COMMON.findIndex(one => name.startsWith(one + ".") && !name.slice(one.length + 1).includes("."));
        const member = COMMON.findIndex(one => name.startsWith(one + "."));
        found.push([Math.min(same, near), common >= 0 ? common : member >= 0 ? 20 + member : 40, name.length, name, page]);
      }
    }
    found.sort((one, other) => one[0] - other[0] || one[1] - other[1] || one[2] - other[2]);
    return found.slice(0, MOST).map(one => one.slice(3));
  }

  const query = document.querySelector("[data-md-component=search-query]"), results = document.querySelector(".md-search-result__list");
  if (query && results) {
    const shown = document.createElement("ol");
    shown.className = "md-search-result__list";
    results.before(shown);
    const show = async () => {
      const asked = query.value, found = await find(asked);
      if (asked !== query.value || asked === shown.dataset.query) return;
      shown.dataset.query = asked;
      shown.replaceChildren();
      for (const [name, page] of found) {
        const a = make(make(shown, "li", "md-search-result__item"), "a", "md-search-result__link");
        a.href = new URL(page, api);
        const article = make(a, "article", "md-search-result__article md-typeset");
        article.dataset.mdScore = 1e9; /* what Enter opens */
        make(article, "h1", "", name);
      }
    };
    query.addEventListener("input", show);
    new MutationObserver(show).observe(results, { childList: true }); /* also a query that the address brings */
  }

  const list = document.querySelector(".md-sidebar--primary .md-nav--primary > .md-nav__list");
  if (list && location.href.startsWith(api.href))
    beside(list, location.pathname.slice(api.pathname.length).replace(/\.html$/, "").split("/").map(decodeURIComponent));
})();
