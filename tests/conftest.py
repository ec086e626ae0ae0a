"""What a whole run of the tests shows at its end."""


def pytest_terminal_summary(terminalreporter):
    """The areas that were measured, with their budgets; the workers of pytest-xdist send them with their reports."""
    reports = [report for key in ("passed", "failed") for report in terminalreporter.getreports(key)]
    areas = dict(sorted(pair for report in reports for key, pair in report.user_properties if key == "area"))
    if areas:
        from cdu_synth.area import budgets

        terminalreporter.section("area of the blocks")
        for line in budgets.table(areas, budgets.read()):
            terminalreporter.write_line(line)
