"""What strangers do is said once, and counted."""

from controller.security.said import OTHERS, Again, SaidSeldom


def test_the_same_of_one_network_is_said_once_and_then_how_often_it_came_again():
    said = SaidSeldom(60)
    assert [said.is_first("192.0.2.1", "no TLS", at_s) for at_s in (0, 1, 2)] == [True, False, False]
    assert said.is_first("192.0.2.1", "revoked", 3)
    assert said.is_first("192.0.2.2", "no TLS", 4)
    assert said.over(59) == ()
    assert said.over(60) == (Again("192.0.2.1", "no TLS", 2),)
    assert said.is_first("192.0.2.1", "no TLS", 61)
    assert said.over(200) == (), "what came once was told in full"


def test_however_many_strangers_there_are_little_is_kept_and_said_of_them():
    said = SaidSeldom(60, most=10)
    told = sum(said.is_first(f"2001:db8:{number:x}::", "no TLS", 0) for number in range(5_000))
    assert told == 11
    assert said.over(60) == (Again(OTHERS, "", 4_989),)
