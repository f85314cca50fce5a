"""The controller's own certificate, as it is on disk now."""

from controller.security import pki_files
from controller.security.own_certificates import OwnCertificates
from controller.security.tls import ServerTls
from topology.certificates import OVSDB_URI, Kind

DAY_S = 86_400


def test_they_are_read_again_when_they_were_renewed_and_kept_while_a_file_is_broken(tmp_path):
    now = pki_files.now()
    pki_files.init(tmp_path, "here", now, 3650)
    made = pki_files.make(tmp_path, Kind.CONTROLLER, ("controller.example", "192.0.2.1"), now, 10)
    stem = str(made.certificate).removesuffix(".pem")
    own = OwnCertificates(ServerTls(f"{stem}.key", f"{stem}.pem", str(tmp_path / "ca.pem")))
    days = {one.whose: round((one.end_s - now.timestamp()) / DAY_S) for one in own.found()}
    assert days == {"controller": 10, "authority": 3650}
    assert own.found()[0].name == "controller.example"
    pki_files.renew(tmp_path, Kind.CONTROLLER, "controller.example", now, 20)
    assert round((own.found()[0].end_s - now.timestamp()) / DAY_S) == 20
    made.certificate.write_text("nothing")
    assert round((own.found()[0].end_s - now.timestamp()) / DAY_S) == 20


def test_what_switches_are_shown_is_the_controllers_too_where_it_is_another(tmp_path):
    now = pki_files.now()
    files = {}
    for name, kind, names in (
        ("pki", Kind.CONTROLLER, ("controller.example",)),
        ("ovsdb", Kind.OVSDB, ("controller.example", OVSDB_URI)),
    ):
        pki_files.init(tmp_path / name, "here", now, 3650)
        made = pki_files.make(tmp_path / name, kind, names, now, 10 if kind is Kind.OVSDB else 700)
        files[name] = ServerTls(str(made.key), str(made.certificate), str(tmp_path / "pki" / "ca.pem"))
    own = OwnCertificates(files["pki"], switches=files["ovsdb"]).found()
    days = [(one.whose, one.name, round((one.end_s - now.timestamp()) / DAY_S)) for one in own]
    assert ("controller", "controller.example", 10) in days
    assert ("controller", "controller.example", 700) in days
    assert len(OwnCertificates(files["pki"], switches=files["pki"]).found()) == 2, "each file is one"


def test_without_tls_there_are_none():
    assert OwnCertificates(None).found() == ()
