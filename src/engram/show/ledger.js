// Filters of the ledger. Their state is kept in the address, so that a filtered view can be linked:
// #paper=…&kind=…&status=…&verdict=disagrees,stale&words=…   and   #claim-id opens one claim. Without this script all claims are shown.
(() => {
  const byId = (id) => document.getElementById(id)
  const form = byId("filters"), words = byId("words")
  const selects = ["paper", "kind", "status"].map(byId)
  const boxes = [...form.querySelectorAll("[name=verdict]")]
  const claims = [...document.querySelectorAll(".claim")].map((node) => ({
    node,
    paper: node.dataset.paper,
    kind: node.dataset.kind,
    status: node.dataset.status,
    verdict: node.dataset.state,
    text: [".what > code", ".sentence"].map((part) => node.querySelector(part).textContent).join(" ").toLowerCase(),
  }))

  const chosen = () => ({
    ...Object.fromEntries(selects.map((select) => [select.id, select.value])),
    verdict: boxes.filter((box) => box.checked).map((box) => box.value).join(","),
    words: words.value.trim(),
  })

  // each test asks one control; a control that is not set lets everything pass
  const tests = {
    paper: (claim, want) => claim.paper === want,
    kind: (claim, want) => claim.kind === want,
    status: (claim, want) => claim.status === want,
    verdict: (claim, want) => want.split(",").includes(claim.verdict),
    words: (claim, want) => want.toLowerCase().split(/\s+/).every((word) => claim.text.includes(word)),
  }
  const passes = (claim, want, names) => names.every((name) => !want[name] || tests[name](claim, want[name]))

  function show() {
    const want = chosen(), names = Object.keys(tests)
    for (const claim of claims) claim.node.hidden = !passes(claim, want, names)
    for (const group of document.querySelectorAll(".group")) group.hidden = !group.querySelector(".claim:not([hidden])")
    const shown = claims.filter((claim) => !claim.node.hidden)
    byId("shown").textContent = `${shown.length} of ${claims.length} claims`
    byId("clear").hidden = !names.some((name) => want[name])
    byId("open").textContent = shown.some((claim) => !claim.node.open) || !shown.length ? "open all" : "close all"
    count(want)
  }

  // beside each choice: how many claims it would show, given the other controls
  const others = (name) => Object.keys(tests).filter((other) => other !== name)
  function count(want) {
    for (const select of selects) {
      const left = claims.filter((claim) => passes(claim, want, others(select.id)))
      for (const option of select.options) {
        const n = left.filter((claim) => !option.value || claim[select.id] === option.value).length
        option.textContent = `${option.dataset.label} (${n})`
      }
    }
    const verdicts = claims.filter((claim) => passes(claim, want, others("verdict")))
    for (const box of boxes) {
      const n = verdicts.filter((claim) => claim.verdict === box.value).length
      box.parentNode.querySelector(".count").textContent = n
      box.parentNode.classList.toggle("none", !n)
    }
  }

  function remember() {
    const set = Object.entries(chosen()).filter(([, value]) => value)
    const hash = set.map(([name, value]) => `${name}=${encodeURIComponent(value).replaceAll("%2C", ",")}`).join("&")
    show()
    try {
      history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search)
    } catch {
      // a page inside another may have no address of its own, and browsers refuse very many changes: filters work on
    }
  }

  function restore() {
    const hash = location.hash.slice(1), state = new URLSearchParams(hash.replaceAll("+", "%2B"))
    words.value = state.get("words") ?? ""
    for (const select of selects) {
      select.value = state.get(select.id) ?? ""
      if (select.selectedIndex < 0) select.value = ""
    }
    const verdicts = (state.get("verdict") ?? "").split(",")
    for (const box of boxes) box.checked = verdicts.includes(box.value)
    const one = claims.find((claim) => [claim.node.id, encodeURIComponent(claim.node.id)].includes(hash))
    if (one) one.node.open = true
    show()
    if (one) one.node.scrollIntoView()
  }

  async function copy(button) {
    const text = button.previousElementSibling
    try {
      await navigator.clipboard.writeText(text.textContent)
      button.textContent = "copied"
    } catch {
      getSelection().selectAllChildren(text) // no clipboard here: leave it selected
      button.textContent = "selected"
    }
    setTimeout(() => { button.textContent = "copy" }, 1500)
  }

  form.addEventListener("submit", (event) => event.preventDefault())
  form.addEventListener("input", remember)
  byId("clear").addEventListener("click", () => { form.reset(); remember(); words.focus() })
  byId("open").addEventListener("click", (event) => {
    const open = event.target.textContent === "open all"
    for (const claim of claims) if (!claim.node.hidden) claim.node.open = open
  })
  for (const claim of claims) claim.node.addEventListener("toggle", show)
  for (const button of document.querySelectorAll(".copy")) {
    button.hidden = false
    button.addEventListener("click", () => copy(button))
  }
  addEventListener("hashchange", restore)
  form.hidden = false
  restore()
})()
