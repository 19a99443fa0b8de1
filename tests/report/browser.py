"""Opens a report in headless Chromium: nothing fails to load, nothing is logged, slider and cells work by keyboard, and every section can be
photographed at two widths in both colour schemes. Prints what the page says, as JSON, for the test that called it.

    browser.py PAGE FOLDER-FOR-SCREENSHOTS
"""

import base64
import json
import pathlib
import re
import sys

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.actions.action_builder import ActionBuilder
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

WIDTHS = (390, 1280)
SCHEMES = ("light", "dark")
# the place on the slider that a page opens with
START = 3
# what is seen of views of several sizes
SEEN = ".piece:not([hidden]) "


def start():
    options = Options()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.binary_location = "/usr/bin/chromium"
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)


def failures(driver):
    """What failed to load, and what was asked of anything but the file itself."""
    bad = []
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.loadingFailed":
            bad.append(message["params"]["errorText"])
        if message["method"] == "Network.requestWillBeSent":
            address = message["params"]["request"]["url"]
            if not address.startswith(("file:", "data:")):
                bad.append(address)
    return bad


def press(driver, element, *keys):
    driver.execute_script("arguments[0].focus()", element)
    driver.switch_to.active_element.send_keys(*keys)


def explore(driver):
    """What cells say by arrow keys and by pointer, by the figure's address."""
    said = {}
    for figure in driver.find_elements(By.CSS_SELECTOR, "figure:has([data-cells])"):
        output = figure.find_element(By.CSS_SELECTOR, ".cell output")
        button = figure.find_element(By.CSS_SELECTOR, ".cell button")
        press(driver, button, Keys.ARROW_RIGHT)
        first = output.text
        press(driver, button, Keys.ARROW_DOWN, Keys.ARROW_DOWN)
        said[figure.get_attribute("id")] = [first, output.text]
    said["by pointer"] = point(driver, driver.find_element(By.ID, "latencies"))
    return said


def point(driver, figure):
    """What the cell says that is last in the first row, when the pointer is over it, and nothing was said before."""
    svg, output = figure.find_element(By.TAG_NAME, "svg"), figure.find_element(By.CSS_SELECTOR, ".cell output")
    edges = json.loads(figure.find_element(By.CSS_SELECTOR, ".picture script").get_attribute("textContent"))
    place = "const b = arguments[0].getBoundingClientRect(); return [b.left, b.top, b.width / arguments[0].viewBox.baseVal.width]"
    driver.execute_script("arguments[0].scrollIntoView()", svg)
    left, top, scale = driver.execute_script(place, svg)
    driver.execute_script("arguments[0].textContent = ''", output)
    actions = ActionBuilder(driver)
    x, y = left + sum(edges["x"][-2:]) / 2 * scale, top + sum(edges["y"][:2]) / 2 * scale
    actions.pointer_action.move_to_location(round(x), round(y))
    actions.perform()
    return output.text


def shown(driver):
    """The words of the views that are seen, each with its numbers of pictures and tables, once they are unpacked."""
    views = driver.find_elements(By.CSS_SELECTOR, ".view:not([hidden])")
    WebDriverWait(driver, 10).until(lambda _: all(v.find_elements(By.CSS_SELECTOR, SEEN + "p") for v in views))
    count = lambda view, what: len(view.find_elements(By.CSS_SELECTOR, SEEN + what))
    return [[v.find_element(By.CSS_SELECTOR, SEEN + "p").text, count(v, "svg"), count(v, "table")] for v in views]


def slide(driver):
    """What the schedule shows for each collective at the slider's start, and after each step to its end; then from the last root."""
    slider, collective, root = (driver.find_element(By.CSS_SELECTOR, f"[data-choose={name}]") for name in ("size", "collective", "root"))
    seen = {}
    for option in Select(collective).options:
        if option.text != Select(collective).first_selected_option.text:
            press(driver, collective, Keys.ARROW_DOWN)
        steps = seen.setdefault(option.text, [])
        if slider.is_enabled():
            press(driver, slider, Keys.HOME)
        steps.append(shown(driver))
        for _ in range(int(slider.get_attribute("max")) if slider.is_enabled() else 0):
            press(driver, slider, Keys.ARROW_RIGHT)
            steps.append(shown(driver))
    press(driver, collective, Keys.HOME)
    press(driver, root, Keys.END)
    seen["from the last root"] = [shown(driver)]
    # as the page was opened, for what comes next
    press(driver, root, Keys.HOME)
    press(driver, slider, Keys.HOME, *[Keys.ARROW_RIGHT] * START)
    shown(driver)
    return seen


def pictures(driver):
    """How many pictures of each section are seen."""
    seen = "return Array.from(arguments[0].querySelectorAll('svg')).filter(e => e.getBoundingClientRect().height > 50).length"
    return {s.get_attribute("id"): driver.execute_script(seen, s) for s in driver.find_elements(By.CSS_SELECTOR, "main > section")}


def photograph(driver, folder):
    """Screenshots of all sections; the sizes of those that are empty or wider than the window."""
    bad = []
    for width in WIDTHS:
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        for scheme in SCHEMES:
            features = [{"name": "prefers-color-scheme", "value": scheme}]
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
            for section in driver.find_elements(By.CSS_SELECTOR, "main > section"):
                name = section.get_attribute("id")
                box = "const b = arguments[0].getBoundingClientRect(); return [b.top + scrollY, b.width, b.height]"
                top, wide, high = driver.execute_script(box, section)
                clip = {"x": 0, "y": top, "width": width, "height": min(high, 3000), "scale": 1}
                shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
                data = base64.b64decode(shot["data"])
                (folder / f"{name}-{width}-{scheme}.png").write_bytes(data)
                if high < 50 or wide > width or len(data) < 2000:
                    bad.append(f"{name} at {width}: {wide} x {high}, {len(data)} bytes")
        if driver.execute_script("return document.documentElement.scrollWidth") > width:
            bad.append(f"the page is wider than {width}")
        # trees scroll, so that their names can be read
        scrolls = "return Array.from(document.querySelectorAll('figure:not([id^=tree]) .picture'), p => p.scrollWidth - p.clientWidth).filter(n => n > 1).length"
        if driver.execute_script(scrolls) > 0:
            bad.append(f"pictures are wider than {width}")
    return bad


def printed(driver):
    """How many values unfolded tables have, on the screen and on paper, the most columns of a table on paper, what is in parts afterwards, and how many sheets
    are printed of a page as it opens."""
    sheets = base64.b64decode(driver.execute_cdp_cmd("Page.printToPDF", {"paperWidth": 8.27, "paperHeight": 11.69})["data"])
    send = lambda name: driver.execute_script("window.dispatchEvent(new Event(arguments[0]))", name)
    unfold = "document.querySelector('#latencies details').open = arguments[0]"
    seen = "Array.from(document.querySelectorAll('%s')).filter(e => !e.closest('details:not([open]), [hidden]'))"
    values = "return " + seen % "tbody td" + ".length"
    driver.execute_script(unfold, True)
    found = {"sheets": len(re.findall(rb"/Type\s*/Page\b", sheets)), "values": driver.execute_script(values)}
    send("beforeprint")
    found["values on paper"] = driver.execute_script(values)
    widest = "return Math.max(..." + seen % "table" + ".map(t => t.querySelectorAll('thead th').length))"
    found["widest on paper"] = driver.execute_script(widest)
    send("afterprint")
    found["left behind"] = driver.execute_script("return document.querySelectorAll('table.part, table[hidden]').length")
    driver.execute_script(unfold, False)
    return found


def main(page, folder):
    driver = start()
    try:
        driver.set_window_size(1280, 900)
        driver.get(pathlib.Path(page).resolve().as_uri())
        # where things are is known at once
        driver.execute_script("document.documentElement.style.scrollBehavior = 'auto'")
        found = {
            "title": driver.title,
            "pairs": explore(driver),
            "slider": slide(driver),
            "printed": printed(driver),
            "pictures": pictures(driver),
            "photographs": photograph(driver, pathlib.Path(folder)),
            "failed": failures(driver),
            "logged": [entry["message"] for entry in driver.get_log("browser")],
            "scripts": driver.execute_script("return document.scripts.length"),
        }
    finally:
        driver.quit()
    print(json.dumps(found))


main(sys.argv[1], sys.argv[2])
